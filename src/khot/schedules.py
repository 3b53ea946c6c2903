"""Schedules: temperatures as functions of the training step.

A schedule is any function from the number of the step to a positive temperature. Those here are frozen dataclasses, so
that they print, compare and pickle.
"""

from dataclasses import dataclass

from khot import _checks


@dataclass(frozen=True)
class Constant:
    """Schedule that keeps one temperature.

    Parameters
    ----------
    value : float
        The temperature, positive.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If `value` is not a positive finite number.

    Examples
    --------
    >>> from khot.schedules import Constant
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
    """Schedule from `start` at step 0 to `end` at step `steps` and after it."""

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _checks.positive("start", self.start)
        _checks.positive("end", self.end)
        _checks.whole_number("steps", self.steps, least=1)

    def _fraction(self, step: int) -> float:
        """Fraction of the way that is done at `step`, from 0 to 1."""
        return min(max(step / self.steps, 0.0), 1.0)


class Linear(_Ramp):
    """Schedule with equal differences between steps, then constant.

    ``temperature = start * (1 - f) + end * f`` with ``f = min(step / steps, 1)``

    Parameters
    ----------
    start, end : float
        Temperatures at step 0 and from step `steps` on, positive.
    steps : int
        Length of the ramp, at least 1.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If `start` or `end` is not a positive finite number, or `steps` not a positive int.

    Examples
    --------
    >>> from khot.schedules import Linear
    >>> schedule = Linear(2.0, 0.5, steps=100)
    >>> schedule(0), schedule(50), schedule(1000)
    (2.0, 1.25, 0.5)
    """

    def __call__(self, step: int) -> float:
        fraction = self._fraction(step)
        return self.start * (1 - fraction) + self.end * fraction


class Exponential(_Ramp):
    """Schedule with equal ratios between steps, then constant.

    ``temperature = start ** (1 - f) * end ** f`` with ``f = min(step / steps, 1)``

    Parameters
    ----------
    start, end : float
        Temperatures at step 0 and from step `steps` on, positive.
    steps : int
        Length of the ramp, at least 1.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If `start` or `end` is not a positive finite number, or `steps` not a positive int.

    Examples
    --------
    >>> from khot.schedules import Exponential
    >>> schedule = Exponential(4.0, 0.25, steps=100)
    >>> schedule(0), schedule(50), schedule(1000)
    (4.0, 1.0, 0.25)
    """

    def __call__(self, step: int) -> float:
        fraction = self._fraction(step)
        return self.start ** (1 - fraction) * self.end**fraction
