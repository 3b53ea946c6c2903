"""Learning rates as functions of the training step. Those of `khot.schedules` can be used as well."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from khot import _checks
from khot.errors import InvalidValueError

_HIGHEST = 1e37  # optimizers multiply the rate in float32


def rate_at(rate: float | Callable[[int], float], step: int) -> float:
    """Learning rate at `step`, from a number or a schedule."""
    value = _checks.not_negative("learning_rate", rate(step) if callable(rate) else rate)
    if value > _HIGHEST:
        raise InvalidValueError(f"learning_rate must be at most {_HIGHEST:g}, but got {value}: pass a smaller one")
    return value


def _along_cosine(start: float, end: float, share: float) -> float:
    share = min(max(share, 0.0), 1.0)
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


@dataclass(frozen=True)
class Cosine:
    """Schedule from `start` to `end` along half a cosine in `steps` steps, and `end` after that.

    >>> Cosine(0.1, steps=100)(50)
    0.05
    """

    start: float
    steps: int
    end: float = 0.0

    def __post_init__(self) -> None:
        _checks.positive("start", self.start)
        _checks.whole_number("steps", self.steps, least=1)
        _checks.not_negative("end", self.end)

    def __call__(self, step: int) -> float:
        return _along_cosine(self.start, self.end, step / self.steps)


@dataclass(frozen=True)
class OneCycle:
    """One cycle: from `peak`/25 to `peak` during the share `rise` of the `steps`, then down to `peak`/250000.

    Both parts follow half a cosine, as in `torch.optim.lr_scheduler.OneCycleLR`. The momentum does not change.

    >>> OneCycle(0.1, steps=100)(29)
    0.1

    References
    ----------
    Smith & Topin, 2019, Super-convergence.
    """

    peak: float
    steps: int
    rise: float = 0.3

    def __post_init__(self) -> None:
        _checks.positive("peak", self.peak)
        _checks.whole_number("steps", self.steps, least=1)
        if not _checks.positive("rise", self.rise) < 1:
            raise InvalidValueError(f"rise must lie between 0 and 1, but got {self.rise}: pass a share of the steps")

    def __call__(self, step: int) -> float:
        top, last = self.rise * self.steps - 1, self.steps - 1
        if step < top:
            return _along_cosine(self.peak / 25, self.peak, step / top)
        return _along_cosine(self.peak, self.peak / 25e4, (step - top) / (last - top))


@dataclass(frozen=True)
class WarmUp:
    """Number or schedule `rate`, multiplied by a factor that grows linearly to 1 during the first `steps` steps.

    >>> [WarmUp(0.1, steps=4)(step) for step in (0, 1, 3, 9)]
    [0.025, 0.05, 0.1, 0.1]
    """

    rate: float | Callable[[int], float]
    steps: int

    def __post_init__(self) -> None:
        if not callable(self.rate):
            _checks.positive("rate", self.rate)
        _checks.whole_number("steps", self.steps, least=1)

    def __call__(self, step: int) -> float:
        return rate_at(self.rate, step) * min(1.0, (step + 1) / self.steps)
