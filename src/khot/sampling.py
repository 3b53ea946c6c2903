"""Algorithm 2: a differentiable sample of k items without replacement."""

import inspect
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError
from khot.keys import perturbed
from khot.topk import hard_topk, successive_softmax

Relaxation = Callable[..., Tensor]
"""Any ``f(keys, k, temperature) -> (..., n)``, with a keyword `ordered` if it can return k vectors (..., k, n)."""


def sample_subset(
    logits: Tensor,
    k: int | Tensor,
    temperature: float | Tensor,
    *,
    relaxation: Relaxation = successive_softmax,
    hard: bool = False,
    ordered: bool = False,
    sample_shape: Sequence[int] = (),
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw a relaxed sample of k items without replacement, differentiable in the logits.

    The sample is ``relaxation(logits + Gumbel noise, k, temperature)``. As the temperature goes to 0 it becomes an
    exact sample from p(S|w), with w = exp(logits).

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights; -inf marks an absent item.
    k : int or integer Tensor of shape (...)
        Size of the subset, 0 <= k <= n.
    temperature : float or Tensor of shape (...)
        Positive: small is close to discrete, large is smooth.
    relaxation : callable
        ``f(keys, k, temperature) -> (..., n)``: one of khot's or your own. A k or temperature with one entry a row has
        the shape (...,); next to the keys it needs ``unsqueeze(-1)``.
    hard : bool
        Whether to return straight-through samples: their value is the exact top k of the keys, their gradient that of
        the relaxation.
    ordered : bool
        Whether to return the k (relaxed) one-hot vectors in the order in which the items are drawn. From a temperature
        of about 0.5 on, a vector of `successive_softmax` no longer singles out one item; those of `softsort` and
        `neuralsort` do at every temperature.
    sample_shape : sequence of int
        Shape of independent samples, in front of the shape of the logits.
    generator : torch.Generator, optional
        Source of the noise; torch's default generator if not given.

    Returns
    -------
    Tensor, shape (*sample_shape, ..., n), or (*sample_shape, ..., max k, n) if `ordered`
        In the dtype of the logits.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For bad logits, k, temperature or shapes, for `ordered` with a relaxation that has no such keyword, and for a
        relaxation that returns a wrong shape or NaN.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().requires_grad_()
    >>> seed = torch.Generator().manual_seed(0)
    >>> sample_subset(logits, 2, 1.0, generator=seed).sum()
    tensor(2., grad_fn=<SumBackward0>)
    >>> sample_subset(logits, 2, 1.0, hard=True, generator=seed)
    tensor([1., 0., 0., 1.], grad_fn=<AddBackward0>)

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Algorithm 2.
    """
    batch = _checks.float_tensor("logits", logits).shape[:-1]
    relaxation = _checks.relaxation(relaxation)
    k, temperature = _checks.count(k, logits.shape[-1], batch), _checks.temperature(temperature, batch)
    if ordered and not _can_order(relaxation):
        raise InvalidTypeError(
            f"ordered=True needs a relaxation with a keyword `ordered`, but {name_of(relaxation)} has none: "
            "use successive_softmax, neuralsort or softsort"
        )
    batch = (*_checks.shape("sample_shape", sample_shape), *batch)
    k = k.expand(batch) if isinstance(k, Tensor) and k.ndim else k
    temperature = temperature.expand(batch) if isinstance(temperature, Tensor) and temperature.ndim else temperature
    keys = perturbed(logits, (*batch, logits.shape[-1]), generator, centred=True)
    choice = {"ordered": True} if ordered else {}
    relaxed = relaxation(keys, k, temperature, **choice)
    exact = hard_topk(keys, k, **choice) if hard or ordered else keys
    if not isinstance(relaxed, Tensor) or relaxed.shape != exact.shape:
        got = tuple(relaxed.shape) if isinstance(relaxed, Tensor) else type(relaxed).__name__
        raise InvalidValueError(
            f"the relaxation {name_of(relaxation)} must return shape {tuple(exact.shape)}, but got {got}: correct it"
        )
    if not _never_nan(relaxation) and _checks.holds(relaxed.isnan()):
        raise InvalidValueError(f"the relaxation {name_of(relaxation)} returned NaN: look for an overflow in it")
    return (exact + (relaxed - relaxed.detach()) if hard else relaxed).to(logits.dtype)


def _can_order(relaxation: Relaxation) -> bool:
    try:
        parameters = inspect.signature(relaxation).parameters.values()
    except ValueError:  # a builtin without a signature
        return False
    return any(p.name == "ordered" or p.kind is p.VAR_KEYWORD for p in parameters)


def _never_nan(relaxation: Relaxation) -> bool:
    return hasattr(relaxation, "traits") and relaxation.traits.never_nan  # pyright: ignore[reportFunctionMemberAccess]


def name_of(relaxation: Relaxation) -> str:
    """Name of a relaxation, for messages."""
    return getattr(relaxation, "__name__", repr(relaxation))
