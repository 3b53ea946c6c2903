"""The successive softmax of a table of rows: compiled on the CPU, a plain loop elsewhere or without Numba."""

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot.topk._arrays import as_array, compiled, narrow, numbers
from khot.topk.successive import _plain
from khot.topk.successive._compiled.constants import BAD, SHORT
from khot.topk.successive._modes import exact_table, table_shape


@lru_cache(1)
def _loops() -> ModuleType:
    from khot.topk.successive._compiled import tables

    return tables


def forward(
    keys: Tensor, k: Tensor | int, temperature: Tensor | float, at: Tensor | None, steps: int, mode: int, keep: bool
) -> tuple[Tensor, Tensor, bool]:
    """The result, of `table_shape`, in the dtype of the keys, a state (rows, .) for `backward`, and if keys are bad.

    The keys (rows, n) may hold -inf; k is int64, the temperature float64, one for all or (rows,); `at` (rows, steps)
    int64 holds the items of single entries. Rows with NaN or +inf, which are bad, become NaN; on a device other than
    the CPU nobody looks for them.
    """
    if not compiled(keys):
        return _plain_forward(keys, k, temperature, at, steps, mode, keep)
    array = as_array(keys)
    count, n = array.shape
    result = np.empty(table_shape(array.shape, steps, mode), array.dtype)
    state, paths = np.empty((count, _state_size(n, steps, array.itemsize) if keep else 0)), np.empty(count, np.int64)
    lowest = _loops().forward(_table(array, k, temperature, at, steps, mode), _as_tables(result), state, paths)
    out = torch.from_numpy(result)
    if lowest <= SHORT:
        short = torch.from_numpy(paths == SHORT)
        k, at = tensors(k, at, keys)
        out[short] = exact_table(keys[short], k[short], at[short], steps, mode).to(out.dtype)
    return out if out.dtype == keys.dtype else out.to(keys.dtype), torch.from_numpy(state), lowest == BAD


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
        return _plain_backward(keys, k, temperature, at, state, grad, steps, mode, in_temperature)
    array = as_array(keys)
    g = _as_tables(as_array(grad).astype(array.dtype, copy=False))
    table, states = _table(array, k, temperature, at, steps, mode), np.ascontiguousarray(state.numpy())
    results = _loops().backward(table, g, states, in_temperature)
    grad_keys, grad_temperature = torch.from_numpy(results[0]), torch.from_numpy(results[1])
    return grad_keys if grad_keys.dtype == keys.dtype else narrow(grad_keys, keys.dtype), grad_temperature


def empty_state(keys: Tensor, steps: int) -> Tensor:
    """What `forward` leaves for `backward` if k and temperature are tensors, without values."""
    count, n = keys.shape
    if compiled(keys):
        return keys.new_empty(count, _loops().state_size(n, steps, max(keys.dtype.itemsize, 4)), dtype=torch.float64)
    rows, _ = _plain.state_shape(n, steps)
    return keys.new_empty(count, rows * n, dtype=_plain.widest(keys.device))


def tensors(k: Any, at: Tensor | None, keys: Tensor) -> tuple[Tensor, Tensor]:
    """k and items with one entry a row."""
    k = k if isinstance(k, Tensor) else torch.full((len(keys),), k, device=keys.device)
    return k, k.new_empty(len(keys), 0) if at is None else at


def _plain_forward(
    keys: Tensor, k: Any, temperature: Any, at: Tensor | None, steps: int, mode: int, keep: bool
) -> tuple[Tensor, Tensor, bool]:
    rows = _plain.prepare(keys, k, temperature, steps)
    out = rows.logits.new_zeros(table_shape(keys.shape, steps, mode))
    k, at = tensors(k, at, keys)
    state = _plain.forward(rows, at, mode, out, keep)
    bad, short = _exceptions(keys, k, temperature)
    if not keys.is_cpu or bool(short.any()):
        out = torch.where(_like(short, out), exact_table(keys, k, at, steps, mode).to(out.dtype), out)
    out = out.masked_fill(_like(bad, out), torch.nan)
    return out.to(keys.dtype), state.flatten(1), keys.is_cpu and bool(bad.any())


def _plain_backward(
    keys: Tensor,
    k: Any,
    temperature: Any,
    at: Tensor | None,
    state: Tensor,
    grad: Tensor,
    steps: int,
    mode: int,
    in_temperature: bool,
) -> tuple[Tensor, Tensor]:
    rows = _plain.prepare(keys, k, temperature, steps)
    k, at = tensors(k, at, keys)
    kept = state.reshape(len(keys), *_plain.state_shape(keys.shape[1], steps))
    grads = _plain.backward(rows, at, mode, kept, grad.to(rows.logits.dtype), in_temperature)
    bad, short = _exceptions(keys, k, temperature)
    none = bad | short
    grad_keys, grad_t = (torch.where(_like(none, part), 0, part) for part in grads)
    return narrow(grad_keys, keys.dtype), grad_t.to(temperature.dtype) if isinstance(temperature, Tensor) else grad_t


def _exceptions(keys: Tensor, k: Tensor, temperature: Any) -> tuple[Tensor, Tensor]:
    """Rows (rows,) that become NaN, and rows with fewer than k present items, or none."""
    bad = ~(keys < torch.inf).all(-1)
    if isinstance(temperature, Tensor):
        bad |= ~((temperature > 0) & (temperature < torch.inf))
    return bad, (keys != -torch.inf).sum(-1) < k.clamp_min(1)


def _like(rows: Tensor, table: Tensor) -> Tensor:
    return rows.reshape(-1, *[1] * (table.ndim - 1))


@lru_cache(64)
def _state_size(n: int, steps: int, itemsize: int) -> int:
    return _loops().state_size(n, steps, itemsize)


def _table(array: np.ndarray, k: Any, temperature: Any, at: Tensor | None, steps: int, mode: int) -> Any:
    count = len(array)
    columns = numbers(k, count, np.int64), numbers(temperature, count, np.float64), _items(at, count)
    return _loops().Table(array, *columns, steps, mode)


def _as_tables(x: np.ndarray) -> np.ndarray:
    """With one row where there is one vector."""
    return x if x.ndim == 3 else x[:, None]


def _items(at: Tensor | None, count: int) -> np.ndarray:
    return np.empty((count, 0), np.int64) if at is None else at.contiguous().numpy()
