"""What the subset distributions share: logits (..., n), an int k, shapes and `expand`."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Size, Tensor
from torch.distributions import Distribution

from khot import _checks
from khot.distributions import constraints
from khot.errors import InvalidTypeError, InvalidValueError
from khot.keys import gumbel_keys


class SubsetDistribution(Distribution):
    """Base class of all four; `_event` names the axes of an event, "k" or "n"."""

    arg_constraints: ClassVar = {"logits": constraints.log_weights}  # pyright: ignore
    _event: ClassVar[tuple[str, ...]]
    logits: Tensor
    k: int

    def __init__(self, logits: Tensor, k: int, validate_args: bool | None = None) -> None:
        self.logits = _checks.logits(logits)
        if isinstance(k, Tensor):
            raise InvalidTypeError(
                "k must be an int in a distribution, but got a Tensor: its events have one shape for all rows"
            )
        self.k = int(_checks.count(k, self.n, ()))
        present = (self.logits > -torch.inf).sum(-1)
        if _checks.holds(present < self.k):
            raise InvalidValueError(
                f"every row of logits needs at least k = {self.k} present items (above -inf), but one has "
                f"{int(present.min())}: lower k, or leave the row out"
            )
        event_shape = Size(getattr(self, axis) for axis in self._event)
        # torch's default, but for the life of the process: torch.compile turns that of all distributions off
        validate_args = __debug__ if validate_args is None else validate_args
        super().__init__(self.logits.shape[:-1], event_shape, validate_args)

    @property
    def n(self) -> int:
        """Number of items."""
        return self.logits.shape[-1]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new: Any = self._get_checked_instance(type(self), _instance)
        batch_shape = Size(batch_shape)
        new.k, new.logits = self.k, self.logits.expand(*batch_shape, self.n)
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        """Carry over what a subclass has beside the logits and k."""

    def _keys(self, sample_shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        """Gumbel keys (*sample_shape, ..., n), in float64: in less, large logits would swallow the noise."""
        sample_shape = _checks.shape("sample_shape", sample_shape)
        return gumbel_keys(self.logits.double().expand(*sample_shape, *self.logits.shape), generator)

    def _check_sample(self, value: Tensor, support: constraints.Constraint, size: int, what: str) -> None:
        """Raise unless `value` has `size` entries on its last axis, fits the batch shape and lies in the support."""
        if not isinstance(value, Tensor):
            raise InvalidTypeError(f"value must be a torch.Tensor of {what}, but got {type(value).__name__}")
        if not self._validate_args:
            return
        fits = value.ndim > 0 and value.shape[-1] == size
        try:
            torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        except RuntimeError:
            fits = False
        if not fits:
            raise InvalidValueError(
                f"value must hold {what}, in a shape that broadcasts with {(*self.batch_shape, size)}, "
                f"but got shape {tuple(value.shape)}"
            )
        if _checks.holds(~support.check(value)):
            raise InvalidValueError(f"value must hold {what}, but got {value}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(logits: {tuple(self.logits.shape)}, k: {self.k})"
