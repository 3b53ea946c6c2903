"""Shift and scale of columns, computed without overflow; rounding errors do not count as differences."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from khot.errors import InvalidValueError

_ROUNDING = 10 * np.finfo(np.float64).eps  # relative to the largest number
_ROWS = 4096  # read at a time
_LARGEST = 1e300  # number, so that differences do not overflow


@dataclass(frozen=True)
class Scaling:
    """Rows minus a mean, divided by a scale.

    Both have one entry for each column of a table, or each channel of images. A scale that is a single number keeps the
    proportions of distances between rows.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __call__(self, raw: Tensor) -> Tensor:
        """Scale rows (b, d), or images (b, height, width, channels) to (b, channels, height, width), in float32.

        The mean is subtracted before numbers are rounded to float32.
        """
        dtype = torch.float32 if raw.dtype == torch.float32 or raw.dtype.itemsize < 4 else torch.float64
        mean, scale = (torch.as_tensor(part, dtype=dtype, device=raw.device) for part in (self.mean, self.scale))
        rows = ((raw.to(dtype) - mean) / scale).float()
        return rows.permute(0, 3, 1, 2) if rows.ndim == 4 else rows  # with strides that torch calls channels_last


def standard_scaling(raw: np.ndarray) -> Scaling:
    """Scaling to mean 0 and variance 1 along the last axis. Columns that are constant, or nearly, are only shifted."""
    largest = max(-float(raw.min()), float(raw.max()))
    if largest > _LARGEST:
        raise InvalidValueError(f"X must have numbers up to {_LARGEST:g}, but got {largest:g}: scale it")
    mean, spread = mean_and_spread(lambda: (raw[start : start + _ROWS] for start in range(0, len(raw), _ROWS)))
    least = np.finfo(raw.dtype if raw.dtype.kind == "f" else np.float32).tiny
    return Scaling(mean, one_for_zero(np.where(spread < least, 0.0, spread)))


def mean_and_spread(pieces: Callable[[], Iterable[np.ndarray]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column. The latter is 0 where a column is constant up to rounding.

    `pieces` yields arrays (..., columns) of finite numbers, some rows at a time, and is called several times.

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
    """Divisors of columns: their spreads, and 1 for constant columns."""
    return np.where(spread > 0, spread, 1.0)


def _tables(pieces: Callable[[], Iterable[np.ndarray]]) -> Iterable[np.ndarray]:
    return (piece.reshape(-1, piece.shape[-1]) for piece in pieces())
