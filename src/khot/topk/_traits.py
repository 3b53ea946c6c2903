"""The promises of a relaxation, as an attribute of the function; the tests check them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

F = TypeVar("F", bound=Callable)


def _error(n: int, k: int, spread: float, temperature: float) -> float:
    return max(2e-6, 24e-8 * spread / temperature)


@dataclass(frozen=True)
class Traits:
    """Promises of a relaxation ``f(keys, k, temperature) -> k-hot``."""

    bounded: bool = False
    """Entries are at most 1."""
    keeps_order_from: float = float("inf")
    """Temperature from which larger keys have larger entries."""
    differentiable_twice: bool = True
    smooth_at_ties: bool = True
    """Equal keys have equal gradients."""
    error: Callable[[int, int, float, float], float] = _error
    """Largest error of a float32 result, given n, k, the range of the keys and the temperature."""
    never_nan: bool = True
    """The result is finite for all valid keys."""


def promises(**traits) -> Callable[[F], F]:
    """Attach `Traits` to a relaxation."""

    def mark(function: F) -> F:
        vars(function)["traits"] = Traits(**traits)
        return function

    return mark
