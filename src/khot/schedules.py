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
class Linear:
    """From `start` to `end` by equal differences in `steps` steps, then `end`.

    >>> Linear(2.0, 0.5, steps=100)(50)
    1.25
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _check(self.start, self.end, self.steps)

    def __call__(self, step: int) -> float:
        return self.start + (self.end - self.start) * _share(step, self.steps)


@dataclass(frozen=True)
class Exponential:
    """From `start` to `end` by equal ratios in `steps` steps, then `end`.

    >>> Exponential(4.0, 0.25, steps=100)(50)
    1.0
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _check(self.start, self.end, self.steps)

    def __call__(self, step: int) -> float:
        return self.start * (self.end / self.start) ** _share(step, self.steps)


def _share(step: int, steps: int) -> float:
    return min(max(step / steps, 0.0), 1.0)


def _check(start: float, end: float, steps: int) -> None:
    _checks.positive("start", start)
    _checks.positive("end", end)
    _checks.whole_number("steps", steps, least=1)
