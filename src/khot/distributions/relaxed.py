"""Relaxed subsets as distributions: reparameterised samples, no density."""

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
    """Distribution of relaxed k-hot vectors, whose samples are differentiable in the logits and the temperature.

    A sample is ``relaxation(logits + Gumbel noise, k, temperature)``. As the temperature goes to 0 it becomes an exact
    sample of `Subset`.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights; -inf marks an absent item. Every row needs at least k present items.
    k : int
        Size of the subset, 0 <= k <= n.
    temperature : float or Tensor of shape (...)
        Positive: small is close to discrete, large is smooth.
    relaxation : callable
        ``f(keys, k, temperature) -> (..., n)``: one of khot's or your own.
    validate_args : bool, optional
        As in `torch.distributions`.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf logits, a bad k, temperature or relaxation, or too few present items.

    See Also
    --------
    khot.sample_subset : the same samples by a function, also straight-through.
    khot.nn.SubsetSampler : the same samples by a layer, with a schedule of temperatures.

    Examples
    --------
    >>> import torch
    >>> from khot import RelaxedSubset
    >>> d = RelaxedSubset(torch.zeros(5, requires_grad=True), 2, temperature=0.5)
    >>> d.rsample((3,)).shape
    torch.Size([3, 5])

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Algorithm 2.
    """

    has_rsample = True
    _event_axes = ("n",)

    def __init__(
        self,
        logits: Tensor,
        k: int,
        temperature: float | Tensor,
        relaxation: Relaxation = successive_softmax,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(logits, k, validate_args)
        self.temperature: float | Tensor = _checks.temperature(temperature, self.batch_shape)
        self.relaxation: Relaxation = _checks.relaxation(relaxation)

    @torch_constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Non-negative vectors that sum to k."""
        return constraints.RelaxedKHot(self.k)

    def rsample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw relaxed samples.

        Parameters
        ----------
        sample_shape : sequence of int
            Shape of independent samples.
        generator : torch.Generator, optional
            Source of the noise; torch's default generator if not given.

        Returns
        -------
        Tensor, shape (*sample_shape, *batch_shape, *event_shape)
            Differentiable in the logits and the temperature.
        """
        return sample_subset(
            self.logits,
            self.k,
            self.temperature,
            relaxation=self.relaxation,
            ordered="k" in self._event_axes,
            sample_shape=sample_shape,
            generator=generator,
        )

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw relaxed samples without a gradient; arguments as for `rsample`."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)

    def log_prob(self, value: Tensor) -> NoReturn:
        """Raise `NotAvailableError`: the density has no closed form."""
        raise NotAvailableError(
            f"{type(self).__name__} has no density in closed form (k > 1 draws share their noise): take log_prob of "
            "Subset or OrderedSubset at a hard sample, or estimate gradients through rsample, which needs no density"
        )

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        temperature = self.temperature
        new.temperature = temperature.expand(batch_shape) if isinstance(temperature, Tensor) else temperature
        new.relaxation = self.relaxation


class RelaxedOrderedSubset(RelaxedSubset):
    """Distribution of sequences of k relaxed one-hot vectors; an event has shape (k, n).

    Parameters, errors and references are those of `RelaxedSubset`. The relaxation must have the keyword `ordered`, as
    `successive_softmax`, `softsort` and `neuralsort` do.

    Examples
    --------
    >>> import torch
    >>> from khot import RelaxedOrderedSubset
    >>> d = RelaxedOrderedSubset(torch.zeros(5, requires_grad=True), 2, temperature=0.5)
    >>> d.rsample((3,)).shape
    torch.Size([3, 2, 5])
    """

    _event_axes = ("k", "n")

    @torch_constraints.dependent_property(is_discrete=False, event_dim=2)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sequences of non-negative vectors that each sum to 1."""
        return torch_constraints.independent(constraints.RelaxedKHot(1), 1)
