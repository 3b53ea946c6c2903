"""The bounded relaxation: a sigmoid of each key, with one threshold for each row."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot import _checks
from khot.topk._arrays import as_array, as_gradient, column, compiled, flat
from khot.topk._rows import ABSENT, convert, finish_sum, mapped_first, scaled
from khot.topk._traits import promises

_SATURATED = 100.0  # a sigmoid this far from its centre is 0 or 1 to the last digit
_HALVINGS = 64  # the bracket of the threshold shrinks below the spacing of float64 numbers


@promises(bounded=True, keeps_order_from=0.0)
def capped_simplex(keys: Tensor, k: int | Tensor, temperature: float | Tensor) -> Tensor:
    """Relaxed top k with entries between 0 and 1.

    It maximises ``<keys, a> + temperature * H(a)`` over ``{a : 0 <= a <= 1, sum a = k}``, where H is the sum of the
    binary entropies. The solution is ``a = sigmoid((keys - tau) / temperature)``, with the threshold tau for which
    ``sum a = k``.

    Parameters
    ----------
    keys : Tensor, shape (..., n)
        Scores; -inf marks an absent item.
    k : int or integer Tensor of shape (...)
        Size of the subset, 0 <= k <= n.
    temperature : float or Tensor of shape (...)
        Positive; as a tensor it can have a gradient.

    Returns
    -------
    Tensor, shape (..., n)
        In the dtype of the keys; entries in [0, 1] that sum to k and keep the order of the keys. A row with at most k
        present items is exactly 1 at each of them, with zero gradient.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf keys, a bad k, a temperature that is not positive and finite, wrong shapes.

    Examples
    --------
    >>> import torch
    >>> capped_simplex(torch.tensor([1.0, 3.0, 2.0, 0.5]), 2, 0.5)
    tensor([0.2437, 0.9462, 0.7042, 0.1060])

    Notes
    -----
    The gradient has a closed form: with d = a (1 - a) and the cotangent g it is d (g - <d, g> / sum d), or zero where
    sum d underflows. A float32 result is within max(2e-6, 4u range/temperature) of the exact one, where u = 6e-8 and
    range is the largest minus the smallest present key of the row. The cost is O(n) for each step of the search for
    tau.

    References
    ----------
    Amos, Koltun & Kolter, "The limited multi-label projection layer", 2019.
    """
    problem = keys, k, temperature, _ = _checks.problem(keys, k, temperature)
    moving = isinstance(temperature, Tensor) and temperature.requires_grad and torch.is_grad_enabled()
    if moving or not compiled(keys) or _checks.observed(keys, k, temperature):
        return _in_torch(*problem)
    k, temperature, count = flat(k, keys), flat(temperature, keys), math.prod(keys.shape[:-1])
    columns = column(k, count, np.int64).copy(), column(temperature, count, np.float64).copy()  # they may change later
    return _Compiled.apply(keys, *columns)  # pyright: ignore[reportReturnType]


class _Compiled(torch.autograd.Function):
    """The compiled loops, for calls that torch does not observe; they also find bad keys."""

    @staticmethod
    def forward(ctx: Any, keys: Tensor, k: np.ndarray, temperature: np.ndarray) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        from khot.topk.capped_simplex import _compiled

        result, *solution, sound = _compiled.forward(as_array(keys).reshape(len(k), keys.shape[-1]), k, temperature)
        if not sound:
            _checks.logits(keys, "keys")
        ctx.save_for_backward(keys)
        ctx.rest = k, temperature, solution
        return torch.from_numpy(result).reshape(keys.shape).to(keys.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        from khot.topk.capped_simplex import _compiled

        (keys,), (k, temperature, (origin, tau)) = ctx.saved_tensors, ctx.rest
        if torch.is_grad_enabled():  # for second derivatives
            k, temperature = (torch.from_numpy(x).reshape(keys.shape[:-1]) for x in (k, temperature))
            (result,) = torch.autograd.grad(_in_torch(keys, k, temperature), keys, grad, create_graph=True)
            return result, None, None
        array = as_array(keys).reshape(len(k), keys.shape[-1])
        g = as_array(grad).astype(array.dtype, copy=False).reshape(array.shape)
        result = _compiled.backward(array, temperature, origin, tau, g)
        return as_gradient(result, keys.dtype).reshape(keys.shape), None, None


def _in_torch(keys: Tensor, k: int | Tensor, temperature: float | Tensor, steps: int = 0) -> Tensor:
    """The torch form, for every device, derivative and transform."""
    rows = convert(keys, k, temperature, steps)
    origin, tau = _threshold(rows.keys.detach(), rows.present, rows.k, rows.temperature.detach())
    x = rows.scaled(origin)
    return finish_sum(_CappedSimplex.apply(x, tau, rows.present, rows.k), rows)  # pyright: ignore[reportArgumentType]


class _CappedSimplex(torch.autograd.Function):
    """``sigmoid(x - tau)`` with tau held by the constraint; the backward pass is itself differentiable."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, tau: Tensor, present: Tensor, k: Tensor) -> Tensor:
        m, k = present.sum(-1, keepdim=True), k.unsqueeze(-1)
        a = torch.where(present, torch.sigmoid(x - tau), 0)
        return torch.where((k >= m) & (k <= x.shape[-1]), present.to(x.dtype), a * (k > 0))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (a,) = ctx.saved_tensors
        d = a * (1 - a)
        total = d.sum(-1, keepdim=True)
        vanished = total < torch.finfo(d.dtype).tiny
        mean = (d * grad).sum(-1, keepdim=True) / torch.where(vanished, 1, total)
        return torch.where(vanished, 0, d * (grad - mean)), None, None, None


@torch.library.custom_op("khot::capped_simplex_threshold", mutates_args=())
def _threshold(keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """The origin and tau, both (..., 1), for which the sum of sigmoid((key - origin) / temperature - tau) is k.

    The origin is the k-th largest key: measured from there, keys near the threshold keep their digits. Where k is 0 or
    all items are chosen, tau is arbitrary.
    """
    if compiled(keys):
        from khot.topk.capped_simplex import _compiled

        table = keys.masked_fill(~present, -torch.inf).reshape(-1, keys.shape[-1]).numpy()
        columns = (x.reshape(-1).contiguous().numpy() for x in (k, temperature))
        _, *solution, _ = _compiled.forward(table, *columns)
        return tuple(torch.from_numpy(x).reshape(*k.shape, 1) for x in solution)  # pyright: ignore[reportReturnType]
    descending = keys.masked_fill(~present, ABSENT).sort(dim=-1, descending=True).values
    m, k = present.sum(-1, keepdim=True), k.unsqueeze(-1)
    origin = descending.gather(-1, (k.minimum(m) - 1).clamp_min(0))
    return origin, _bisect(scaled(keys, present, temperature, origin), present, m, k)


@_threshold.register_fake
def _(keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    return keys.new_empty(*k.shape, 1), keys.new_empty(*k.shape, 1)


@_threshold.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    return _threshold(*mapped_first(info.batch_size, in_dims, args)), (0, 0)


def _bisect(x: Tensor, present: Tensor, m: Tensor, k: Tensor) -> Tensor:
    """Solve sum of sigmoid(x - tau) = k by bisection; tau is arbitrary where k is 0 or at least m.

    Let s be the keys in descending order. k + 1 items at s_(k+1) alone sum to k at tau = s_(k+1) - log k, which is the
    lower end of the bracket. k - 1 ones and m - k + 1 items at s_k sum to k at tau = s_k + log(m - k), the upper end.
    If the two keys are so far apart that all sigmoids are 0 or 1 between them, any point in between will do.
    """
    inner = k.minimum(m - 1).clamp_min(1)
    largest = x.masked_fill(~present, ABSENT).sort(dim=-1, descending=True).values
    inside, outside = largest.gather(-1, inner - 1), largest.gather(-1, inner.clamp_max(x.shape[-1] - 1))
    middle, reach = inside / 2 + outside / 2, _SATURATED + m.clamp_min(1).double().log()
    low = torch.maximum(outside - inner.double().log(), middle - reach)
    high = torch.minimum(inside + (m - inner).clamp_min(1).double().log(), middle + reach)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_low = torch.where(present, torch.sigmoid(x - middle), 0).sum(-1, keepdim=True) > k
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return (low + high) / 2
