"""The successive softmax of a table of rows: compiled on the CPU, a plain loop elsewhere or without Numba."""

from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from khot import _checks
from khot.topk._arrays import as_array, as_gradient, column, compiled, narrow, per_row
from khot.topk.hard import one_hots
from khot.topk.successive import _plain
from khot.topk.successive._compiled.constants import BAD, SHORT, SUM, VECTORS


class Problem(NamedTuple):
    """The checked arguments of a call, as rows."""

    keys: Tensor  # (rows, n), -inf for absent items
    k: int | Tensor  # one for all, or (rows,) int64
    temperature: float | Tensor  # one for all, or (rows,) float64
    at: Tensor | None  # items of single entries, (rows, steps) int64
    steps: int  # the largest k
    mode: int  # what is asked for: SUM, VECTORS or ENTRIES


def forward(problem: Problem, keep: bool) -> tuple[Tensor, Tensor, bool]:
    """Compute the result, a state (rows, .) for `backward`, if that is to be kept, and whether any key is bad.

    Rows with NaN or +inf, which are bad, become NaN; on a device other than the CPU nobody looks for them.
    """
    if not compiled(problem.keys):
        return _plain_forward(problem, keep)
    table = _table(problem)
    count, n = table.keys.shape
    result = np.empty(table_shape(table), table.keys.dtype)
    size = _state_size(n, problem.steps, table.keys.itemsize) if keep else 0
    state, paths = np.empty((count, size)), np.empty(count, np.int64)
    lowest = _loops().forward(table, _as_tables(result), state, paths)
    out = torch.from_numpy(result)
    if lowest <= SHORT:
        short = torch.from_numpy(paths == SHORT)
        out[short] = _hard(problem, short).to(out.dtype)
    if out.dtype != problem.keys.dtype:
        out = out.to(problem.keys.dtype)
    return out, torch.from_numpy(state), lowest == BAD


def backward(problem: Problem, state: Tensor, grad: Tensor, in_temperature: bool) -> tuple[Tensor, Tensor]:
    """Gradients in the keys, clamped to the largest number of their dtype, and in the temperature if asked for."""
    if not compiled(problem.keys):
        return _plain_backward(problem, state, grad, in_temperature)
    table = _table(problem)
    g = _as_tables(as_array(grad).astype(table.keys.dtype, copy=False))
    grad_keys, grad_t = _loops().backward(table, g, np.ascontiguousarray(state.numpy()), in_temperature)
    return as_gradient(grad_keys, problem.keys.dtype), torch.from_numpy(grad_t)


def table_shape(problem: Any) -> tuple[int, ...]:
    """Shape of the result: k-hot vectors, ordered vectors, or single entries."""
    rows, n = problem.keys.shape
    if problem.mode == SUM:
        return rows, n
    return (rows, problem.steps, n) if problem.mode == VECTORS else (rows, problem.steps)


def empty_state(keys: Tensor, steps: int) -> Tensor:
    """An uninitialised state of the size that `forward` returns if k and temperature are tensors."""
    count, n = keys.shape
    if compiled(keys):
        return keys.new_empty(count, _loops().state_size(n, steps, max(keys.dtype.itemsize, 4)), dtype=torch.float64)
    rows, _ = _plain.state_shape(n, steps)
    return keys.new_empty(count, rows * n, dtype=_plain.widest(keys.device))


@lru_cache(1)
def _loops() -> ModuleType:
    from khot.topk.successive._compiled import tables

    return tables


@lru_cache(64)
def _state_size(n: int, steps: int, itemsize: int) -> int:
    return _loops().state_size(n, steps, itemsize)


def _table(problem: Problem) -> Any:
    keys, k, temperature, at, steps, mode = problem
    array = as_array(keys)
    count = len(array)
    columns = column(k, count, np.int64), column(temperature, count, np.float64)
    items = np.empty((count, 0), np.int64) if at is None else at.contiguous().numpy()
    return _loops().Table(array, *columns, items, steps, mode)


def _as_tables(x: np.ndarray) -> np.ndarray:
    """View vectors (rows, n) as tables (rows, 1, n)."""
    return x if x.ndim == 3 else x[:, None]


def _hard(problem: Problem, rows: Any = slice(None)) -> Tensor:
    """The result for rows with fewer than k present items, which are taken one by one, the largest key first."""
    keys, k = problem.keys[rows], per_row(problem.k, problem.keys)[rows]
    vectors = one_hots(keys, k, problem.steps)
    if problem.at is None:
        return vectors.sum(1) if problem.mode == SUM else vectors
    at = problem.at[rows]
    return vectors.gather(-1, at.clamp_min(0).unsqueeze(-1)).squeeze(-1) * (at >= 0)


def _plain_forward(problem: Problem, keep: bool) -> tuple[Tensor, Tensor, bool]:
    keys, k, temperature, at, steps, mode = problem
    rows = _plain.prepare(keys, k, temperature, steps)
    out = rows.logits.new_zeros(table_shape(problem))
    state = _plain.forward(rows, at, mode, out, keep)
    if _is_ordinary(problem):
        return out.to(keys.dtype), state.flatten(1), False
    bad, short = _exceptions(problem)
    if not keys.is_cpu or bool(short.any()):
        out = torch.where(_like(short, out), _hard(problem).to(out.dtype), out)
    out = out.masked_fill(_like(bad, out), torch.nan)
    return out.to(keys.dtype), state.flatten(1), keys.is_cpu and bool(bad.any())


def _plain_backward(problem: Problem, state: Tensor, grad: Tensor, in_temperature: bool) -> tuple[Tensor, Tensor]:
    keys, k, temperature, at, steps, mode = problem
    rows = _plain.prepare(keys, k, temperature, steps)
    kept = state.reshape(len(keys), *_plain.state_shape(keys.shape[1], steps))
    grad_keys, grad_t = _plain.backward(rows, at, mode, kept, grad.to(rows.logits.dtype), in_temperature)
    if not _is_ordinary(problem):
        bad, short = _exceptions(problem)
        grad_keys, grad_t = (torch.where(_like(bad | short, part), 0, part) for part in (grad_keys, grad_t))
    return narrow(grad_keys, keys.dtype), grad_t.to(temperature.dtype) if isinstance(temperature, Tensor) else grad_t


def _is_ordinary(problem: Problem) -> bool:
    """Whether there are no exceptions, as far as one pass over keys on the CPU can tell."""
    keys, k, t, *_ = problem
    if not keys.is_cpu or isinstance(k, Tensor) or isinstance(t, Tensor) or k == 0 or not keys.numel():
        return False
    low, high = keys.aminmax()
    return bool((low > -torch.inf) & (high < torch.inf))


def _exceptions(problem: Problem) -> tuple[Tensor, Tensor]:
    """Rows (rows,) that become NaN, and rows with fewer than k present items, or none."""
    keys, t, sound = problem.keys, problem.temperature, _checks.usable(problem.keys)
    if isinstance(t, Tensor):
        sound &= (t > 0) & (t < torch.inf)
    return ~sound, (keys != -torch.inf).sum(-1) < per_row(problem.k, keys).clamp_min(1)


def _like(rows: Tensor, table: Tensor) -> Tensor:
    return rows.reshape(-1, *[1] * (table.ndim - 1))
