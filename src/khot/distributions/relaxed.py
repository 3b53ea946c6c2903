"""Relaxed samples as distributions: reparameterised, without a density."""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Size, Tensor
from torch.distributions import constraints as torch_constraints

from khot import _checks
from khot.distributions import constraints
from khot.distributions._base import SubsetDistribution
from khot.errors import NotAvailableError
from khot.sampling import Relaxation, sample_subset
from khot.topk import successive_softmax


class RelaxedSubset(SubsetDistribution):
    """Distribution of relaxed k-hot vectors; `rsample` is Algorithm 2 of the paper.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights; -inf marks an absent item. Every row needs at least k present items.
    k : int
        Size of the subset.
    temperature : float or Tensor of shape (...)
        Positive.
    relaxation : callable
        ``f(keys, k, temperature) -> (..., n)``.
    validate_args : bool, optional
        As in `torch.distributions`.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf logits, a bad k or temperature, or too few present items.

    Examples
    --------
    >>> import torch
    >>> law = RelaxedSubset(torch.zeros(5, requires_grad=True), 2, temperature=0.5)
    >>> law.rsample((3,)).shape
    torch.Size([3, 5])

    References
    ----------
    Xie & Ermon, 2019, Algorithm 2.
    """

    has_rsample = True
    _event = ("n",)
    _ordered = False

    def __init__(
        self,
        logits: Tensor,
        k: int,
        temperature: float | Tensor,
        relaxation: Relaxation = successive_softmax,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(logits, k, validate_args)
        self.temperature = _checks.temperature(temperature, self.batch_shape)
        self.relaxation = _checks.relaxation(relaxation)

    @torch_constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.RelaxedKHot(self.k)

    def rsample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Relaxed samples (*sample_shape, *batch_shape, *event_shape), differentiable in logits and temperature."""
        return sample_subset(
            self.logits,
            self.k,
            self.temperature,
            relaxation=self.relaxation,
            ordered=self._ordered,
            sample_shape=sample_shape,
            generator=generator,
        )

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """As `rsample`, without a gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)

    def log_prob(self, value: Tensor) -> NoReturn:
        """There is none: raises `NotAvailableError`."""
        raise NotAvailableError(
            f"{type(self).__name__} has no density in closed form (k > 1 draws share their noise): take log_prob of "
            "Subset or OrderedSubset at a hard sample, or estimate gradients through rsample, which needs no density"
        )

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        shared = self.temperature
        new.temperature = shared.expand(batch_shape) if isinstance(shared, Tensor) else shared
        new.relaxation = self.relaxation


class RelaxedOrderedSubset(RelaxedSubset):
    """Distribution of sequences of k relaxed one-hot vectors, (k, n) an event.

    Parameters, errors and references as for `RelaxedSubset`; the relaxation must have the keyword `ordered`.

    Examples
    --------
    >>> import torch
    >>> law = RelaxedOrderedSubset(torch.zeros(5, requires_grad=True), 2, temperature=0.5)
    >>> law.rsample((3,)).shape
    torch.Size([3, 2, 5])
    """

    _event = ("k", "n")
    _ordered = True

    @torch_constraints.dependent_property(is_discrete=False, event_dim=2)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch_constraints.independent(constraints.RelaxedKHot(1), 1)
