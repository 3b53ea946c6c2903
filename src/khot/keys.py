"""From weights to random keys: the k largest keys are a weighted sample without replacement.

Two forms of one key. With E = -log u exponential, `gumbel_keys` are log w - log E and `reservoir_keys` are -E / w.
Each is an increasing function of the other, so with the same noise both rank the items alike (Proposition 1 of
Xie & Ermon, 2019). The race behind it: item i finishes at time E_i / w_i, and the first k to finish win.
"""

import torch
from torch import Tensor

from khot import _checks

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
        Keys in the dtype of the logits; float32 for half-precision logits, whose own grid is so coarse that keys tie.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf, an empty item axis, or a tensor that is not floating-point.

    Examples
    --------
    >>> import torch
    >>> seed = torch.Generator().manual_seed(0)
    >>> gumbel_keys(torch.tensor([0.1, 0.2, 0.7]).log(), seed)
    tensor([-3.5577, -1.8168,  0.1294])

    Notes
    -----
    The noise is built from 53 random bits in float64 and rounded once, so its largest values, which decide the top k,
    keep ten digits even among a million items. (A float32 uniform has 24 bits: there its largest draws tie.)

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Algorithm 2.
    """
    logits = _checks.logits(logits)
    return logits - _exponential(logits, generator).log().to(_key_dtype(logits))


def reservoir_keys(weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw the keys of weighted reservoir sampling, as logarithms.

    Algorithm 1 of the paper uses u ** (1 / w). Its logarithm, ``log(u) / w``, ranks the items alike and neither
    overflows nor underflows, for weights from 1e-300 to 1e300 in float64.

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
    tensor([-35.0833,  -6.1519,  -0.8786])

    References
    ----------
    Efraimidis & Spirakis, "Weighted random sampling with a reservoir", 2006; Xie & Ermon, 2019, Algorithm 1.
    """
    weights = _checks.weights(weights)
    dtype = _key_dtype(weights)
    absent = weights == 0
    keys = -_exponential(weights, generator) / weights.double().masked_fill(absent, 1)
    return keys.clamp_min(torch.finfo(dtype).min).masked_fill(absent, -torch.inf).to(dtype)


def _exponential(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draws of -log u in float64, precise in relative terms near 0, never 0 and never infinite."""
    _checks.generator(generator)
    uniform = torch.rand(like.shape, dtype=torch.float64, device=like.device, generator=generator)
    return -torch.log1p(-uniform.clamp_min(_SMALLEST))


def _key_dtype(like: Tensor) -> torch.dtype:
    return torch.promote_types(like.dtype, torch.float32)
