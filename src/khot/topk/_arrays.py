"""Conversion of checked arguments: an entry for each row, float64, arrays for compiled loops; and of gradients back."""

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


def per_row(x: float | Tensor, keys: Tensor) -> Tensor:
    """A checked k or temperature (then in float64, if it was a number) with one entry for each batch row."""
    if isinstance(x, Tensor):
        return x.to(keys.device).expand(keys.shape[:-1])
    dtype = torch.int64 if isinstance(x, int) else torch.float64
    return torch.full(keys.shape[:-1], x, dtype=dtype, device=keys.device)


class _Widen(torch.autograd.Function):
    """Conversion to float64; the gradient is clamped to the largest number of the input's dtype."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.double() if x.dtype != torch.float64 else x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.dtype = inputs[0].dtype

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return narrow(grad, ctx.dtype)


def widen(x: Tensor) -> Tensor:
    """Convert to float64; the gradient is clamped to the largest number of the dtype of x."""
    return _Widen.apply(x)  # pyright: ignore[reportReturnType]


def flat(x: Any, keys: Tensor) -> Any:
    """A checked k or temperature for a table of rows: the number, or a tensor (rows,), int64 or float64."""
    if not isinstance(x, Tensor):
        return x
    return per_row(widen(x) if x.is_floating_point() else x, keys).reshape(-1)
