"""The successive softmax of tables of rows on the CPU, as functions of NumPy arrays, over all cores.

Most rows are done the quick way (`quick`), the rest thoroughly (`rows`). Rows go to the threads in blocks; very long
rows are done in chunks (`long_rows`). The result of a row does not depend on the threads, nor on its neighbours.
"""

import math

import numpy as np

from khot._jit import pool
from khot._jit.compiler import allocates, shared
from khot.topk.successive._compiled import fast_path as quick
from khot.topk.successive._compiled import full_path as rows
from khot.topk.successive._compiled import long_rows
from khot.topk.successive._compiled import near_and_far as split
from khot.topk.successive._compiled import retries as solution
from khot.topk.successive._compiled.constants import COLD, SUM
from khot.topk.successive._compiled.retries import BAD, SHORT

__all__ = ["BAD", "SHORT", "backward", "forward", "room"]

_EVERY_ROW = 1500  # work on any row, in units of the work on an item
_THOROUGHLY = 5  # times as much work


@shared
@allocates
def _quick_forward(first, last, keys, k, t, out, state, paths):
    """The rows from first to last; the path of those that are left to `_forward` is -1. Returns the lowest."""
    desk, spare, lowest = quick.desk(keys, k.max()), np.empty_like(keys[0]), SHORT + 1
    for b in range(first, last):
        u, kept = solution.divided(state[b], spare)
        ordinary = k[b] > 0 and COLD <= t[b] < math.inf
        paths[b] = quick.forward(keys[b], k[b], t[b], out[b, 0], u, kept, desk) if ordinary else -1
        lowest = min(lowest, paths[b])
    return lowest


@shared
@allocates
def _forward(first, last, which, keys, k, t, at, mode, out, state, paths):
    """Some of the rows `which`, thoroughly."""
    space, spare = np.empty(rows.scratch_size(keys.shape[1], k.max())), np.empty_like(keys[0])
    for b in which[first:last]:
        u, kept = solution.divided(state[b], spare)
        paths[b] = rows.forward_row(keys[b], k[b], t[b], mode, at[b], out[b], u, kept, space)
    return 0


@shared
@allocates
def _quick_backward(first, last, keys, k, t, g, state, out, done):
    """The rows from first to last; those that are left to `_backward` are not done. Returns whether all are."""
    steps, spare, again, complete = k.max(), np.empty_like(keys[0]), state.shape[1] == 0, True
    desk = quick.desk(keys, steps)
    own = np.empty(solution.state_size(len(spare), steps, spare.itemsize) if again else 0)
    for b in range(first, last):
        u, kept = solution.divided(own if again else state[b], spare)
        if again and k[b] > 0 and COLD <= t[b] < math.inf:
            done[b] = quick.forward(keys[b], k[b], t[b], spare, u, kept, desk) >= 0
        else:
            done[b] = not again and kept[0] > 0.0
        if done[b]:
            quick.backward(k[b], t[b], g[b, 0], u, kept, out[b], desk)
        complete &= done[b]
    return complete


@shared
@allocates
def _backward(first, last, which, keys, k, t, at, mode, g, want_t, state, out, grad_t):
    """Some of the rows `which`, thoroughly."""
    space, spare = np.empty(rows.scratch_size(keys.shape[1], k.max())), np.empty_like(keys[0])
    for b in which[first:last]:
        u, kept = solution.divided(state[b], spare)
        grad_t[b] = rows.backward_row(keys[b], k[b], t[b], mode, at[b], g[b], want_t, out[b], u, kept, space)
    return 0


def room(n: int, steps: int, itemsize: int) -> int:
    """Numbers a row that `forward` leaves for `backward`."""
    return solution.kept_size(n, steps, itemsize)


def forward(
    keys: np.ndarray,
    k: np.ndarray,
    t: np.ndarray,
    at: np.ndarray,
    steps: int,
    mode: int,
    out: np.ndarray,
    state: np.ndarray,
    paths: np.ndarray,
) -> int:
    """Fill the tables `out` (rows, ., .) of all rows, see `full_path`, and the path (rows,) each one took.

    Keys (rows, n) and out are float32 or float64 and contiguous; k (rows,), at most `steps`, and at (rows, steps, or 0
    without entries) are int64; t (rows,) and state (rows, `room`, or 0 if no backward will follow) are float64. Returns
    the lowest path up to SHORT, or more.
    """
    work = _work(keys, steps)
    if mode != SUM:
        paths[:] = -1
    elif long_rows.worthwhile(keys.shape[1], steps):

        def one(b: int, alone: bool) -> None:
            paths[b] = long_rows.forward(keys[b], k[b], t[b], out[b, 0], state[b], alone)

        long_rows.each(one, range(len(keys)))
    else:
        lowest = pool.in_blocks(_quick_forward, len(keys), work, keys, k, t, out, state, paths)
        if lowest >= 0:
            return lowest
    left = np.flatnonzero(paths < 0)
    pool.in_blocks(_forward, len(left), _THOROUGHLY * work, left, keys, k, t, at, mode, out, state, paths)
    return paths.min(initial=SHORT + 1)


def backward(
    keys: np.ndarray,
    k: np.ndarray,
    t: np.ndarray,
    at: np.ndarray,
    steps: int,
    mode: int,
    g: np.ndarray,
    state: np.ndarray,
    want_t: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients in the keys (rows, n) and, if wanted, in t (rows,), for the cotangent g of the tables."""
    out, grad_t, done = np.empty_like(keys), np.empty(len(keys)), np.zeros(len(keys), bool)
    work = _work(keys, steps)
    if mode == SUM and not want_t:
        if state.shape[1] > 0 and long_rows.worthwhile(keys.shape[1], steps):
            done = state[:, 0] > 0

            def one(b: int, alone: bool) -> None:
                long_rows.backward(k[b], t[b], g[b], out[b], state[b], alone)

            long_rows.each(one, np.flatnonzero(done).tolist())
        elif pool.in_blocks(_quick_backward, len(keys), work, keys, k, t, g, state, out, done):
            return out, grad_t
    left = np.flatnonzero(~done)
    pool.in_blocks(_backward, len(left), _THOROUGHLY * work, left, keys, k, t, at, mode, g, want_t, state, out, grad_t)
    return out, grad_t


def _work(keys: np.ndarray, steps: int) -> int:
    """On a row, quickly done."""
    n = keys.shape[1]
    return _EVERY_ROW + n + steps * min(n, split.ACTIVE * steps)
