"""The successive softmax of tables of rows on the CPU, as functions of NumPy arrays, over all cores.

Rows go to the threads in blocks; a few very long rows go one after the other, each over all threads. The result of a
row does not depend on either, nor on its neighbours.
"""

from collections.abc import Callable

import numpy as np

from khot.kernels import long_rows, pool, rows, solution, split
from khot.kernels.compiled import exact
from khot.kernels.rows import SUM
from khot.kernels.solution import SHORT

__all__ = ["SHORT", "backward", "forward", "room"]

_EVERY_ROW = 500  # work on any row, in units of the work on an item
_ITEMS = 2**20  # in a block, at most, so that its float64 copy is small


@exact
def _forward(keys, k, t, mode, at, out, state, paths):
    for b in range(keys.shape[0]):
        paths[b] = rows.forward_row(keys[b], k[b], t[b], mode, at[b], out[b], state[b])


@exact
def _backward(keys, k, t, mode, at, g, want_t, state, out, grad_t):
    for b in range(keys.shape[0]):
        grad_t[b] = rows.backward_row(keys[b], k[b], t[b], mode, at[b], g[b], want_t, out[b], state[b])


def room(n: int, steps: int) -> int:
    """Numbers a row that `forward` leaves for `backward`."""
    return solution.state_size(n, steps)


def forward(
    keys: np.ndarray, k: np.ndarray, t: np.ndarray, mode: int, at: np.ndarray, out: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Fill the tables `out` (rows, ., .) of all rows, see `khot.kernels.rows`; returns the path (rows,) each one took.

    Keys (rows, n) and out are float32 or float64 and contiguous; k (rows,) and at (rows, max k, or 0 without entries)
    are int64; t (rows,) and state (rows, `room`, or 0 if no backward will follow) are float64.
    """
    paths = np.empty(len(keys), np.int64)

    def block(part: slice | np.ndarray, dtype: type, alone: bool) -> None:
        wide, result = keys[part].astype(dtype, copy=False), _target(out, part, dtype)
        kept, taken = _target(state, part, np.float64), _target(paths, part, np.int64)
        if alone and mode == SUM:
            taken[0] = long_rows.forward(wide[0], k[part][0], t[part][0], result[0], kept[0])
        else:
            _forward(wide, k[part], t[part], mode, at[part], result, kept, taken)
        out[part], state[part], paths[part] = result, kept, taken

    _run(block, keys, k, t, 1)
    return paths


def backward(
    keys: np.ndarray,
    k: np.ndarray,
    t: np.ndarray,
    mode: int,
    at: np.ndarray,
    g: np.ndarray,
    state: np.ndarray,
    want_t: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients in the keys (rows, n) and, if wanted, in t (rows,), for the cotangent g of the tables."""
    out, grad_t = np.empty_like(keys), np.empty(len(keys))
    most = np.finfo(keys.dtype).max

    def block(part: slice | np.ndarray, dtype: type, alone: bool) -> None:
        wide, given = keys[part].astype(dtype, copy=False), g[part].astype(dtype, copy=False)
        result, in_t = _target(out, part, dtype), _target(grad_t, part, np.float64)
        if alone and mode == SUM and not want_t:
            in_t[0] = long_rows.backward(wide[0], k[part][0], t[part][0], given[0], result[0], state[part][0])
        else:
            _backward(wide, k[part], t[part], mode, at[part], given, want_t, state[part], result, in_t)
        out[part], grad_t[part] = result if dtype == out.dtype else np.clip(result, -most, most), in_t

    _run(block, keys, k, t, 2)
    return out, grad_t


def _run(block: Callable[..., None], keys: np.ndarray, k: np.ndarray, t: np.ndarray, cost: int) -> None:
    """Call `block` with parts of the rows, the dtype to compute them in, and whether it is a single row alone."""
    count, n = keys.shape
    steps = int(k.max(initial=0))
    work = cost * (_EVERY_ROW + n + 3 * steps * min(n, split.ACTIVE * steps))
    if keys.dtype == np.float64 or t.max(initial=0) < solution.COLD:
        groups = [(slice(0, count), np.float64)]
    elif t.min(initial=1) >= solution.COLD:
        groups = [(slice(0, count), np.float32)]
    else:
        cold = t < solution.COLD
        groups = [(np.flatnonzero(cold), np.float64), (np.flatnonzero(~cold), np.float32)]
    alone = long_rows.worthwhile(count, n)
    tasks = [(part, dtype) for group, dtype in groups for part in _parts(group, work, 1 if alone else _ITEMS // n)]
    if alone:
        for task in tasks:
            block(*task, True)
    else:
        pool.each(lambda task: block(*task, False), tasks)


def _parts(group: slice | np.ndarray, work: int, most: int) -> list[slice] | list[np.ndarray]:
    """Blocks of rows, of at most so many."""
    if isinstance(group, slice):
        return pool.blocks(group.stop, work, max(1, most))
    return [group[part] for part in pool.blocks(len(group), work, max(1, most))]


def _target(out: np.ndarray, part: slice | np.ndarray, dtype: type) -> np.ndarray:
    """Some rows of `out` themselves, to write in, or a stand-in for them."""
    in_place = isinstance(part, slice) and out.dtype == dtype
    return out[part] if in_place else np.empty_like(out[part], dtype)
