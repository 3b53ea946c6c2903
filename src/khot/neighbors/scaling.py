"""From raw rows, as they were given, to what an encoder takes."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from khot._estimators.scaling import mean_and_spread, one_for_zero
from khot.errors import InvalidValueError

_ROWS = 4096  # looked at together
_LARGEST = 1e300  # number, so that differences do not overflow


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
    largest = max(-float(raw.min()), float(raw.max()))
    if largest > _LARGEST:
        raise InvalidValueError(f"X must have numbers up to {_LARGEST:g}, but got {largest:g}: scale it")
    mean, spread = mean_and_spread(lambda: (raw[start : start + _ROWS] for start in range(0, len(raw), _ROWS)))
    least = np.finfo(raw.dtype if raw.dtype.kind == "f" else np.float32).tiny
    return Scaling(mean, one_for_zero(np.where(spread < least, 0.0, spread)))
