"""What every relaxation does around its own formula: widen, broadcast, and treat rows with absent items.

All relaxations compute in float64, whatever the dtype of the keys, and round once when they return. At low
temperature this is a need and not a luxury (float32 loses every digit), and elsewhere it is the simplest promise.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from khot import _checks
from khot.topk._arrays import narrow
from khot.topk.hard import one_hots, per_row

ABSENT = torch.finfo(torch.float64).min  # stands for log 0 where an infinity would turn into NaN
FLOOR = -1e300  # the lowest value of a present item; exp(ABSENT - FLOOR) is still 0


class Rows(NamedTuple):
    """A checked problem: keys in float64, and k and temperature with one entry a row."""

    keys: Tensor  # (..., n), float64; absent items hold 0
    present: Tensor  # (..., n) bool
    k: Tensor  # (...)
    temperature: Tensor  # (...), float64
    short: Tensor  # (...) bool: fewer than k items are present, so that there is nothing to relax
    steps: int  # the largest k
    original: Tensor  # the keys as they came

    def largest(self) -> Tensor:
        """The largest present key of a row, (..., 1), without gradient."""
        return self.keys.detach().masked_fill(~self.present, ABSENT).amax(-1, keepdim=True)

    def scaled(self, origin: Tensor) -> Tensor:
        """Keys over temperature, (..., n), measured from an origin (..., 1); absent items hold 0."""
        distance = torch.where(self.present, self.keys - origin, 0).clamp(-1e150, 1e150)
        sharpness = self.temperature.reciprocal().clamp_max(-FLOOR)
        return (distance * sharpness.unsqueeze(-1)).clamp(FLOOR, -FLOOR)


class _Widen(torch.autograd.Function):
    """To float64; gradients come back in the dtype of the input, saturated at its largest number."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.double() if x.dtype != torch.float64 else x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.dtype = inputs[0].dtype

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return narrow(grad, ctx.dtype)


def widen(x: Tensor) -> Tensor:
    """To float64; gradients come back in the dtype of x, saturated."""
    return _Widen.apply(x)  # pyright: ignore[reportReturnType]


def check(keys: Tensor, k: int | Tensor, temperature: float | Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """The arguments of a relaxation, checked: keys, k and temperature (float64) with one entry a row, the largest k."""
    keys = _checks.logits(keys, "keys")
    batch = keys.shape[:-1]
    k = _checks.count(k, keys.shape[-1], batch)
    temperature = _checks.temperature(temperature, batch)
    k, steps = per_row(k, keys)
    hidden = _checks.hidden(keys, temperature)
    if isinstance(temperature, Tensor):
        temperature = widen(temperature.to(keys.device)).expand(batch)
    else:
        temperature = torch.full(batch, temperature, dtype=torch.float64, device=keys.device)
    if hidden:  # a row that could not be refused becomes NaN
        sound = _checks.usable(keys.detach()) & (temperature > 0) & (temperature < torch.inf)
        temperature = torch.where(sound, temperature, torch.nan)
    return keys, k, temperature, steps


def prepare(keys: Tensor, k: int | Tensor, temperature: float | Tensor) -> Rows:
    """Check the arguments of a relaxation and bring them to the form in which its formula needs them."""
    keys, k, temperature, steps = check(keys, k, temperature)
    keys = keys.contiguous()
    present = keys != -torch.inf
    widened = widen(keys.masked_fill(~present, 0))
    return Rows(widened, present, k, temperature, present.sum(-1) < k, steps, keys)


def finish_vectors(vectors: Tensor, rows: Rows, ordered: bool) -> Tensor:
    """From relaxed one-hot vectors (..., steps, n) to the result: zero beyond a row's own k, hard where it is short."""
    alive = torch.arange(rows.steps, device=vectors.device) < rows.k.unsqueeze(-1)
    vectors = vectors * alive.unsqueeze(-1)
    if not ordered:
        return finish_sum(vectors.sum(-2), rows)
    hard = one_hots(rows.original, rows.k, rows.steps).double()
    return torch.where(rows.short[..., None, None], hard, vectors).to(rows.original.dtype)


def finish_sum(vector: Tensor, rows: Rows) -> Tensor:
    """From a relaxed k-hot vector (..., n) to the result: exactly the present items where the row is short."""
    return torch.where(rows.short.unsqueeze(-1), rows.present.double(), vector).to(rows.original.dtype)
