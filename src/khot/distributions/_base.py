"""The base class of the four subset distributions: arguments, shapes, `expand` and noise."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Size, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from khot import _checks
from khot.distributions import constraints
from khot.errors import InvalidTypeError, InvalidValueError
from khot.keys import gumbel_keys


class SubsetDistribution(Distribution):
    """Distribution with logits (..., n) and one int k; `_event_axes` names the axes of an event, "k" or "n"."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"logits": constraints.log_weights}  # pyright: ignore
    _event_axes: ClassVar[tuple[str, ...]]
    logits: Tensor
    k: int

    def __init__(self, logits: Tensor, k: int, validate_args: bool | None = None) -> None:
        self.logits = _checks.logits(logits)
        if isinstance(k, Tensor):
            raise InvalidTypeError(
                "k must be an int in a distribution, because all its events have one shape, but got a Tensor: "
                "pass k.item(), or make one distribution for each size"
            )
        self.k = int(_checks.count(k, self.n, ()))
        present = (self.logits > -torch.inf).sum(-1)
        if _checks.holds(present < self.k):
            raise InvalidValueError(
                f"every row of logits needs at least k = {self.k} present items (above -inf), but one has "
                f"{int(present.min())}: lower k, or leave the row out"
            )
        event_shape = Size(getattr(self, axis) for axis in self._event_axes)
        # torch's default is also __debug__, but torch.compile switches it off for all distributions of the process.
        validate_args = __debug__ if validate_args is None else validate_args
        super().__init__(self.logits.shape[:-1], event_shape, validate_args)

    @property
    def n(self) -> int:
        """Number of items."""
        return self.logits.shape[-1]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """Return the distribution with its batch axes expanded to `batch_shape`, without copying the logits."""
        new: Any = self._get_checked_instance(type(self), _instance)
        batch_shape = Size(batch_shape)
        new.k, new.logits = self.k, self.logits.expand(*batch_shape, self.n)
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        """Expand the parameters that a subclass has in addition to the logits and k."""

    def _keys(self, sample_shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        """Gumbel keys (*sample_shape, ..., n) in float64; in float32, large logits would absorb the noise."""
        sample_shape = _checks.shape("sample_shape", sample_shape)
        return gumbel_keys(self.logits.double().expand(*sample_shape, *self.logits.shape), generator)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(logits: {tuple(self.logits.shape)}, k: {self.k})"
