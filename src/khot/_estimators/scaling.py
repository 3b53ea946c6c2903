"""How far the numbers of a column spread, without overflow, and not less than rounding lets them."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 10 * np.finfo(np.float64).eps  # relative to the largest number


def mean_and_spread(pieces: Callable[[], Iterable[np.ndarray]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column, which is 0 where a column is constant up to rounding.

    `pieces` gives finite numbers (..., columns), some rows at a time, and is called several times.

    >>> mean_and_spread(lambda: [np.array([[1e200, 0.1]]), np.array([[3e200, 0.1]])])
    (array([2.e+200, 1.e-001]), array([1.e+200, 0.e+000]))
    """
    ends = [(piece.min(0), piece.max(0), len(piece)) for piece in _tables(pieces)]
    lows, highs, counts = zip(*ends, strict=True)
    low, high, n = np.min(lows, 0).astype(np.float64), np.max(highs, 0).astype(np.float64), sum(counts)
    unit = np.ldexp(1.0, np.frexp(np.maximum(-low, high))[1] - 1)  # a power of two, so that nothing is rounded
    mean = sum((piece / unit).sum(0) for piece in _tables(pieces)) / n
    squares = sum(np.square(piece / unit - mean).sum(0) for piece in _tables(pieces)) / n
    constant = high / unit - low / unit <= _ROUNDING * np.maximum(-low, high) / unit
    return mean * unit, np.where(constant, 0.0, np.sqrt(squares) * unit)


def one_for_zero(spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """What to divide by: that of constant columns is 1."""
    return np.where(spread > 0, spread, 1.0)


def _tables(pieces: Callable[[], Iterable[np.ndarray]]) -> Iterable[np.ndarray]:
    return (piece.reshape(-1, piece.shape[-1]) for piece in pieces())
