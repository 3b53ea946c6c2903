"""Conversion of tensors to the NumPy arrays that compiled loops take."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot import _jit

_OF_KERNELS = torch.float32, torch.float64


def compiled(keys: Tensor) -> bool:
    """Whether the compiled loops can take these keys."""
    return _jit.AVAILABLE and keys.is_cpu


def as_array(x: Tensor) -> np.ndarray:
    """Convert a tensor to a contiguous array of float32 or float64."""
    if x.dtype not in _OF_KERNELS:
        x = x.float()
    return np.ascontiguousarray(x.numpy(force=True))


def flat(x: Any, batch: Sequence[int]) -> Any:
    """Flatten a tensor with one entry for each batch row to (rows,); return a number unchanged."""
    return x.expand(batch).reshape(-1) if isinstance(x, Tensor) else x


def numbers(x: Any, count: int, dtype: type) -> np.ndarray:
    """An array with one entry for each batch row, from a number or from a tensor of that dtype."""
    return x.detach().contiguous().numpy() if isinstance(x, Tensor) else _repeated(x, count, dtype)


@lru_cache(8)
def _repeated(x: float, count: int, dtype: type) -> np.ndarray:
    return np.full(count, x, dtype)


def narrow(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a gradient to `dtype`, clamped to its largest number."""
    largest = torch.finfo(dtype).max
    return grad.clamp(-largest, largest).to(dtype)
