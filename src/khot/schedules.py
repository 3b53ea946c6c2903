"""Temperatures as functions of the training step. Values with a call, so that they print, compare and pickle."""

from dataclasses import dataclass

from khot import _checks


@dataclass(frozen=True)
class Constant:
    """The same temperature at every step.

    >>> Constant(0.5)(1000)
    0.5
    """

    value: float

    def __post_init__(self) -> None:
        _checks.positive("value", self.value)

    def __call__(self, step: int) -> float:
        return self.value


@dataclass(frozen=True)
class _Ramp:
    """From `start` to `end` in `steps` steps."""

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _checks.positive("start", self.start)
        _checks.positive("end", self.end)
        _checks.whole_number("steps", self.steps, least=1)

    def _share(self, step: int) -> float:
        return min(max(step / self.steps, 0.0), 1.0)


class Linear(_Ramp):
    """From `start` to `end` by equal differences in `steps` steps, then `end`.

    >>> Linear(2.0, 0.5, steps=100)(50)
    1.25
    """

    def __call__(self, step: int) -> float:
        return self.start + (self.end - self.start) * self._share(step)


class Exponential(_Ramp):
    """From `start` to `end` by equal ratios in `steps` steps, then `end`.

    >>> Exponential(4.0, 0.25, steps=100)(50)
    1.0
    """

    def __call__(self, step: int) -> float:
        share = self._share(step)
        return self.start ** (1 - share) * self.end**share
