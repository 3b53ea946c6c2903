"""The successive softmax of a table of rows: compiled on the CPU, in torch operations elsewhere or without Numba."""

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot.topk._arrays import as_array, compiled, narrow, numbers
from khot.topk.successive import _torch
from khot.topk.successive._modes import exact_table, table_shape


@lru_cache(1)
def _loops() -> ModuleType:
    from khot.topk.successive._compiled import tables as successive

    return successive


def forward(
    keys: Tensor, k: Tensor | int, temperature: Tensor | float, at: Tensor | None, steps: int, mode: int, keep: bool
) -> tuple[Tensor, Tensor, bool]:
    """The result, of `table_shape`, in the dtype of the keys, a state (rows, .) for `backward`, and if keys are bad.

    The keys (rows, n) may hold -inf; k is int64, the temperature float64, one for all or (rows,); `at` (rows, steps)
    int64 holds the items of single entries. Rows with NaN or +inf, which are bad, become NaN.
    """
    if not compiled(keys):
        return _forward_in_torch(keys, k, temperature, at, steps, mode)
    loops, array = _loops(), as_array(keys)
    count, n = array.shape
    table = np.empty(table_shape(array.shape, steps, mode), array.dtype)
    state, paths = np.empty((count, _room(n, steps, array.itemsize) if keep else 0)), np.empty(count, np.int64)
    columns = numbers(k, count, np.int64), numbers(temperature, count, np.float64), _items(at, count)
    lowest = loops.forward(array, *columns, steps, mode, _as_tables(table), state, paths)
    out = torch.from_numpy(table)
    if lowest <= loops.SHORT:
        _fill_short(out, torch.from_numpy(paths == loops.SHORT), keys, k, at, steps, mode)
    return out if out.dtype == keys.dtype else out.to(keys.dtype), torch.from_numpy(state), lowest == loops.BAD


def backward(
    keys: Tensor,
    k: Tensor | int,
    temperature: Tensor | float,
    at: Tensor | None,
    state: Tensor,
    grad: Tensor,
    steps: int,
    mode: int,
    in_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients in the keys, saturated at the largest number of their dtype, and, if asked for, in the temperature."""
    if not compiled(keys):
        grad_keys, grad_temperature = _torch.backward(keys, *tensors(k, temperature, at, keys), grad, steps, mode)
        return narrow(grad_keys, keys.dtype), grad_temperature
    array, count = as_array(keys), keys.shape[0]
    g = _as_tables(as_array(grad).astype(array.dtype, copy=False))
    columns = numbers(k, count, np.int64), numbers(temperature, count, np.float64), _items(at, count)
    results = _loops().backward(array, *columns, steps, mode, g, np.ascontiguousarray(state.numpy()), in_temperature)
    grad_keys, grad_temperature = torch.from_numpy(results[0]), torch.from_numpy(results[1])
    return grad_keys if grad_keys.dtype == keys.dtype else narrow(grad_keys, keys.dtype), grad_temperature


def state_size(keys: Tensor, steps: int) -> int:
    """Numbers a row that `forward` leaves for `backward`."""
    return _loops().room(keys.shape[1], steps, max(keys.dtype.itemsize, 4)) if compiled(keys) else 0


def tensors(k: Any, temperature: Any, at: Tensor | None, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """k, temperature and items with one entry a row."""
    count, device = len(keys), keys.device
    if not isinstance(k, Tensor):
        k = torch.full((count,), k, device=device)
    if not isinstance(temperature, Tensor):
        temperature = torch.full((count,), temperature, dtype=torch.float64, device=device)
    return k, temperature, k.new_empty(count, 0) if at is None else at


def _forward_in_torch(
    keys: Tensor, k: Any, temperature: Any, at: Tensor | None, steps: int, mode: int
) -> tuple[Tensor, Tensor, bool]:
    k, temperature, at = tensors(k, temperature, at, keys)
    out = _torch.forward(keys, k, temperature, at, steps, mode)
    bad = ~(keys < torch.inf).all(-1)
    unsound = bad | ~(temperature > 0)
    out = out.masked_fill(unsound.reshape(-1, *[1] * (out.ndim - 1)), torch.nan)
    _fill_short(out, (keys != -torch.inf).sum(-1) < k, keys, k, at, steps, mode)
    return out.to(keys.dtype), keys.new_empty(len(keys), 0, dtype=torch.float64), bool(bad.any())


def _fill_short(out: Tensor, short: Tensor, keys: Tensor, k: Any, at: Any, steps: int, mode: int) -> None:
    """Fill in the rows with fewer than k present items."""
    if short.any():
        k, _, at = tensors(k, 1.0, at, keys)
        out[short] = exact_table(keys[short], k[short], at[short], steps, mode).to(out.dtype)


@lru_cache(64)
def _room(n: int, steps: int, itemsize: int) -> int:
    return _loops().room(n, steps, itemsize)


def _as_tables(x: np.ndarray) -> np.ndarray:
    """With one row where there is one vector."""
    return x if x.ndim == 3 else x[:, None]


def _items(at: Tensor | None, count: int) -> np.ndarray:
    return np.empty((count, 0), np.int64) if at is None else at.contiguous().numpy()
