"""Conversion of tensors to the NumPy arrays that compiled loops take, and of gradients back."""

from functools import lru_cache

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


def column(x: float | Tensor, count: int, dtype: type) -> np.ndarray:
    """An array (count,) from a number, or from a tensor (count,) of that dtype."""
    return x.detach().contiguous().numpy() if isinstance(x, Tensor) else _repeated(x, count, dtype)


@lru_cache(8)
def _repeated(x: float, count: int, dtype: type) -> np.ndarray:
    return np.full(count, x, dtype)


def as_gradient(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Convert the result of a loop to a gradient of a tensor of that dtype."""
    grad = torch.from_numpy(array)
    return grad if grad.dtype == dtype else narrow(grad, dtype)


def narrow(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a gradient to `dtype`, clamped to its largest number."""
    largest = torch.finfo(dtype).max
    return grad.clamp(-largest, largest).to(dtype)
