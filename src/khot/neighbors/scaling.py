"""From raw rows, as they were given, to what an encoder takes."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from khot.errors import InvalidValueError

_ROWS = 4096  # looked at together


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation of each column of a table, or each channel of images."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __call__(self, raw: Tensor) -> Tensor:
        """float32 rows (b, d), or images (b, channels, height, width), of mean 0 and variance 1 where it was learnt."""
        dtype = torch.float64 if raw.dtype == torch.float64 else torch.float32
        mean, scale = (torch.as_tensor(part, dtype=dtype, device=raw.device) for part in (self.mean, self.scale))
        rows = ((raw - mean) / scale).float()
        return rows if rows.ndim == 2 else rows.permute(0, 3, 1, 2)  # of strides that torch calls channels_last


def learn_scaling(raw: np.ndarray) -> Scaling:
    """The scaling of the last axis of raw rows; a column that is constant, or nearly, is only shifted."""
    pieces = [raw[start : start + _ROWS] for start in range(0, len(raw), _ROWS)]
    entries = raw.size / raw.shape[-1]
    axes = tuple(range(raw.ndim - 1))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = sum(piece.sum(axes, dtype=np.float64) for piece in pieces) / entries
        widest = np.max([np.abs(piece - mean).max(axes) for piece in pieces], axis=0)
        unit = np.where(widest > 0, widest, 1.0)  # in this unit, squares neither overflow nor vanish
        scale = unit * np.sqrt(sum(np.square((piece - mean) / unit).sum(axes) for piece in pieces) / entries)
        constant = np.ptp([piece.min(axes) for piece in pieces] + [piece.max(axes) for piece in pieces], axis=0) == 0
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise InvalidValueError(f"X must have values whose sums do not overflow, but got {np.abs(raw).max()}: scale it")
    constant |= scale < np.finfo(raw.dtype if raw.dtype.kind == "f" else np.float32).tiny
    return Scaling(np.asarray(mean), np.where(constant, 1.0, scale))
