"""Weights to random keys: the k items with the largest keys are a weighted sample without replacement.

There are two forms of a key. With E = -log u exponential, `gumbel_keys` are log w - log E and `reservoir_keys` are
-E / w. One is an increasing function of the other, so with the same noise both rank the items alike (Proposition 1 of
Xie & Ermon, 2019). Both describe a race: item i finishes at time E_i / w_i, and the first k items are the sample.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from khot import _checks, _jit

_SMALLEST = 2.0**-54  # stands in for a uniform draw of exactly zero, so that no key is infinite


def gumbel_keys(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Perturb log-weights with Gumbel noise.

    The keys are ``logits - log(-log(u))`` with u uniform on (0, 1); they are finite wherever the logits are.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights; -inf marks an absent item and stays -inf.
    generator : torch.Generator, optional
        Source of the noise; torch's default generator if not given.

    Returns
    -------
    Tensor, shape (..., n)
        Keys in the dtype of the logits; float32 for half-precision logits, in which keys would often tie.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf, an empty item axis, or a tensor that is not floating-point.

    Examples
    --------
    >>> import torch
    >>> seed = torch.Generator().manual_seed(0)
    >>> gumbel_keys(torch.tensor([0.1, 0.2, 0.7]).log(), seed)
    tensor([-2.3966,  1.2742,  2.1727])

    Notes
    -----
    The noise has 52 random bits, and the inner logarithm is taken in float64, so that the largest values, which decide
    the top k, do not tie even among a million items. With the 24 bits of a float32 uniform they would.

    On the CPU the noise comes from a counter-based generator (Threefry) whose key is drawn from `generator`: a seed
    fixes the sample for any number of threads. Other devices, compiled and vmapped code, and installations without
    Numba use torch's generator, which gives other numbers for the same seed.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Algorithm 2.
    """
    return perturbed(_checks.float_tensor("logits", logits), logits.shape, generator, centred=False)


def reservoir_keys(weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw the keys of weighted reservoir sampling, as logarithms.

    The keys are ``log(u) / w`` with u uniform on (0, 1): the logarithm of the keys ``u ** (1 / w)`` of Algorithm 1.
    They rank the items alike, and neither overflow nor underflow for weights from 1e-300 to 1e300 in float64.

    Parameters
    ----------
    weights : Tensor, shape (..., n)
        Non-negative weights; 0 marks an absent item, whose key is -inf.
    generator : torch.Generator, optional
        Source of the noise. The same seed draws the same u as `gumbel_keys`.

    Returns
    -------
    Tensor, shape (..., n)
        Keys in the dtype of the weights; float32 for half-precision weights. Finite for every positive weight.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN, negative or infinite weights, an empty item axis, or a tensor that is not floating-point.

    Examples
    --------
    >>> import torch
    >>> seed = torch.Generator().manual_seed(0)
    >>> reservoir_keys(torch.tensor([0.1, 0.2, 0.7]), seed)
    tensor([-10.9853,  -0.2796,  -0.1139])

    References
    ----------
    Efraimidis & Spirakis, "Weighted random sampling with a reservoir", 2006; Xie & Ermon, 2019, Algorithm 1.
    """
    weights = _checks.weights(weights)
    dtype = _key_dtype(weights)
    absent = weights == 0
    keys = -_exponential(weights, generator, _seed(weights, generator)) / weights.double().masked_fill(absent, 1)
    return keys.clamp_min(torch.finfo(dtype).min).masked_fill(absent, -torch.inf).to(dtype)


def perturbed(logits: Tensor, shape: Sequence[int], generator: torch.Generator | None, *, centred: bool) -> Tensor:
    """Check logits, expand them to a shape and add Gumbel noise.

    If `centred`, the largest logit of each row is subtracted first. This does not change the distribution of the
    sample, and the noise is not lost in a large offset.
    """
    seed = _seed(logits, generator)
    if seed is None or _checks.observed(logits):
        logits = _checks.logits(logits)
        moved = _from_the_largest(logits) if centred else logits
        return moved.expand(shape) - _exponential(logits.expand(shape), generator, seed).log().to(_key_dtype(logits))
    if torch.is_grad_enabled() and logits.requires_grad:
        return _Perturb.apply(logits, shape, seed, centred)  # pyright: ignore[reportReturnType]
    return _perturb(logits, shape, seed, centred)


def _from_the_largest(logits: Tensor) -> Tensor:
    lowest = torch.finfo(logits.dtype).min
    distance = (logits - logits.detach().amax(-1, keepdim=True).clamp_min(lowest)).clamp_min(lowest)
    return torch.where(logits == -torch.inf, logits, distance)


def _perturb(logits: Tensor, shape: Sequence[int], seed: Tensor, centred: bool) -> Tensor:
    from khot.keys import _compiled

    dtype, n = _key_dtype(logits), logits.shape[-1]
    rows = logits.detach().to(dtype).reshape(-1, n).contiguous()
    keys = torch.empty(math.prod(shape[:-1]), n, dtype=dtype)
    if not _compiled.perturb(tuple(seed.tolist()), rows.numpy(), centred, keys.numpy()):
        _checks.logits(logits)
    return keys.reshape(shape)


class _Perturb(torch.autograd.Function):
    """Perturbation, whose derivative in the logits is 1."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, shape: Sequence[int], seed: Tensor, centred: bool) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.shape, ctx.dtype = logits.shape, logits.dtype
        return _perturb(logits, shape, seed, centred)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return grad.sum_to_size(ctx.shape).to(ctx.dtype), None, None, None


def _seed(like: Tensor, generator: torch.Generator | None) -> Tensor | None:
    """Key of the counter-based noise; None where torch's generator is used."""
    _checks.generator(generator)
    if like.device.type != "cpu" or not _jit.AVAILABLE:
        return None
    seed = torch.randint(2**63 - 1, (2,), generator=generator)
    return None if _checks.hidden(like, seed) else seed


def _exponential(like: Tensor, generator: torch.Generator | None, seed: Tensor | None) -> Tensor:
    """Standard exponential draws in float64, positive and finite; minus their logarithm is Gumbel noise."""
    if seed is not None:
        return _counted_noise(seed, like.shape)
    # torch.rand with a generator cannot be compiled for sizes that change
    uniform = like.new_empty(like.shape, dtype=torch.float64).uniform_(generator=generator)
    return -torch.log1p(-uniform.clamp_min(_SMALLEST))


@torch.library.custom_op("khot::noise", mutates_args=())
def _counted_noise(seed: Tensor, shape: list[int]) -> Tensor:
    from khot.keys import _compiled

    result = torch.empty(math.prod(shape), dtype=torch.float64)
    _compiled.exponential(tuple(seed.tolist()), result.numpy())
    return result.reshape(shape)


@_counted_noise.register_fake
def _(seed: Tensor, shape: list[int]) -> Tensor:
    return torch.empty(shape, dtype=torch.float64)


def _key_dtype(like: Tensor) -> torch.dtype:
    return torch.promote_types(like.dtype, torch.float32)
