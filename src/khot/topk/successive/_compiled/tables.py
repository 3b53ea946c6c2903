"""The successive softmax of tables of rows on the CPU, as functions of NumPy arrays, over all cores.

Most rows go the fast path, the rest the full one. The result of a row does not depend on the threads, nor on its
neighbours.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from khot._jit.threads import in_blocks
from khot.topk.successive._compiled import far_items, fast_path, full_backward, full_path, near_and_far, state
from khot.topk.successive._compiled.constants import BAD, EMPTY, INEXACT, LARGEST, NODES, OPEN, SUM, TRUNCATED
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.near_and_far import NEAR_PER_STEP
from khot.topk.successive._compiled.state import MOST_NODES, Layout

_KEPT = 8  # numbers of a state for each item of the row, at most: else it is cheaper to run the recursion again
_LONG = 4 * CHUNK  # rows that are worth dividing between threads
_AT_ONCE = 2**22  # numbers of the states of rows that go a path together
_EVERY_ROW = 1500  # work on any row, in units of the work on an item
_MORE = 5  # times as much work on the full path
_FAST, _FULL = 1.0, 2.0  # what a state says of the path that filled it


class Table(NamedTuple):
    """Rows, and what is asked of them."""

    keys: np.ndarray  # (rows, n), float32 or float64, contiguous
    k: np.ndarray  # (rows,), int64, at most `steps`
    t: np.ndarray  # (rows,), float64
    at: np.ndarray  # (rows, steps), int64, or (rows, 0) if no entries are asked for
    steps: int
    mode: int

    @property
    def work(self) -> int:
        """Work on a row on the fast path."""
        n = self.keys.shape[1]
        return _EVERY_ROW + n + self.steps * min(n, NEAR_PER_STEP * self.steps)


class _Solved(NamedTuple):
    """Rows that went through the recursion of the full path, and where."""

    rows: np.ndarray  # which of the table
    states: np.ndarray
    places: np.ndarray  # of the rows among the states
    layout: Layout
    results: np.ndarray  # (rows, room), sums of p over the steps


def state_size(n: int, steps: int, itemsize: int) -> int:
    """Numbers a row that `forward` leaves for `backward`, 0 if they would be many."""
    layout = _kept_layout(n, steps)
    return 0 if steps * (layout.room - MOST_NODES) > _KEPT * n else state.size(layout, n, itemsize)


def _kept_layout(n: int, steps: int) -> Layout:
    dense = n < near_and_far.DENSE * steps or n * (steps + 1) < near_and_far.SMALL
    return Layout((n if dense else (NEAR_PER_STEP + 1) * steps) + MOST_NODES, max(steps, 2), steps, 0)


def forward(table: Table, out: np.ndarray, states: np.ndarray, paths: np.ndarray) -> int:
    """Fill the tables `out` (rows, ., .) of all rows, see `full_path`, and the path (rows,) each one took.

    States are float64 (rows, `state_size`, or 0 if no backward will follow). Tables of SHORT rows are left alone.
    Returns the lowest path.
    """
    count, n = table.keys.shape
    kept = states.shape[1] > 0
    if table.mode == SUM and n < _LONG:
        layout = _kept_layout(n, table.steps)._replace(**({} if kept else {"rows": 2}))
        size = state.size(layout, n, table.keys.itemsize)
        arguments = table.keys, table.k, table.t, out, states, size, layout, paths
        if in_blocks(fast_path.forward, count, table.work, *arguments) > OPEN:
            return paths.min(initial=NODES)
    else:
        paths[:] = OPEN
        states[:, state.SOLVED : state.SOLVED + 1] = 0
    rows = np.flatnonzero(paths == OPEN)
    for part in _solve(table, rows, table.mode != SUM, False, states, paths):
        _write(table, part, out)
    out[paths == BAD] = np.nan
    out[paths == EMPTY] = 0
    return paths.min(initial=NODES)


def backward(table: Table, g: np.ndarray, states: np.ndarray, want_t: bool) -> tuple[np.ndarray, np.ndarray]:
    """Gradients in the keys (rows, n) and, if wanted, in t (rows,), for the cotangent g of the tables."""
    out, grad_t = np.empty_like(table.keys), np.zeros(len(table.keys))
    solved = states[:, state.SOLVED] if states.shape[1] > 0 else np.zeros(len(table.keys))
    left = np.ones(len(table.keys), bool)
    if not want_t and states.shape[1] > 0:
        layout = _kept_layout(table.keys.shape[1], table.steps)
        fast, full = np.flatnonzero(solved == _FAST), np.flatnonzero(solved == _FULL)
        _fast_backward(table, fast, g, states, layout, out)
        if len(full):
            _full_backward(table, _Solved(full, states, full, layout, states[:0]), g, out, grad_t)
        left = solved == 0
    elif not want_t and table.mode == SUM and table.keys.shape[1] < _LONG:
        left = _again(table, g, out)
    rows, paths = np.flatnonzero(left), np.full(len(out), OPEN)
    for part in _solve(table, rows, True, want_t, states[:, :0], paths):
        _full_backward(table, part, g, out, grad_t)
    out[left & (paths < NODES)] = 0
    return out, grad_t


def _fast_backward(
    table: Table, rows: np.ndarray, g: np.ndarray, states: np.ndarray, layout: Layout, out: np.ndarray
) -> None:
    if len(rows):
        in_blocks(fast_path.backward, len(rows), table.work, rows, table.k, table.t, g, states, layout, out)


def _again(table: Table, g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Gradients by the fast path without states, some rows at a time; returns which rows are left (rows,)."""
    count, n = table.keys.shape
    layout, left = _kept_layout(n, table.steps), np.empty(count, bool)
    size = state.size(layout, n, table.keys.itemsize)
    step = max(1, _AT_ONCE // size)
    for start in range(0, count, step):
        here = slice(start, min(start + step, count))
        part = table._replace(keys=table.keys[here], k=table.k[here], t=table.t[here])
        states, paths = np.empty((len(part.keys), size)), np.empty(len(part.keys), np.int64)
        results = np.empty((len(part.keys), 1, n), part.keys.dtype)
        arguments = part.keys, part.k, part.t, results, states, size, layout, paths
        in_blocks(fast_path.forward, len(part.keys), table.work, *arguments)
        _fast_backward(part, np.flatnonzero(paths != OPEN), g[here], states, layout, out[here])
        left[here] = paths == OPEN
    return left


def _solve(
    table: Table, rows: np.ndarray, keep: bool, want_t: bool, states: np.ndarray, paths: np.ndarray
) -> Iterator[_Solved]:
    """Run rows through the recursion until they can be trusted, in groups; fills in their paths.

    The ladder: with nodes for the far items, in `states` if there are any, else or if they have no room in memory for
    the purpose; then with all items near. On each rung, rows whose rounding errors may have grown too large go through
    the recursion with 32 digits.
    """
    n, steps = table.keys.shape[1], table.steps
    gap_rows, weight_rows = steps if want_t else 0, max(steps, 2) if keep else 2
    k = table.k[rows]
    with_nodes = rows[(n >= near_and_far.DENSE * k) & (n * (k + 1) >= near_and_far.SMALL)]
    if states.shape[1] > 0:
        yield from _rung(table, with_nodes, MOST_NODES, states, with_nodes, _kept_layout(n, steps), paths)
        with_nodes = with_nodes[(paths[with_nodes] == OPEN) | (paths[with_nodes] == TRUNCATED)]
    nodes = Layout(2 * NEAR_PER_STEP * steps + MOST_NODES, weight_rows, steps, gap_rows)
    yield from _in_parts(table, with_nodes, MOST_NODES, nodes, paths)
    rest = rows[(paths[rows] == OPEN) | (paths[rows] == TRUNCATED) | (paths[rows] == INEXACT)]
    if states.shape[1] > 0 and _kept_layout(n, steps).room >= n:
        yield from _rung(table, rest, 0, states, rest, _kept_layout(n, steps), paths)
    else:
        yield from _in_parts(table, rest, 0, nodes._replace(room=n), paths)


def _in_parts(table: Table, rows: np.ndarray, length: int, layout: Layout, paths: np.ndarray) -> Iterator[_Solved]:
    """A rung with memory of its own, for some rows at a time."""
    size = state.size(layout, table.keys.shape[1] if length > 0 else 0, table.keys.itemsize)
    step = max(1, _AT_ONCE // (size + layout.room))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        yield from _rung(table, part, length, np.empty((len(part), size)), np.arange(len(part)), layout, paths)


def _rung(
    table: Table,
    rows: np.ndarray,
    length: int,
    states: np.ndarray,
    places: np.ndarray,
    layout: Layout,
    paths: np.ndarray,
) -> Iterator[_Solved]:
    """Run rows through the recursion with `length` nodes, or with all items near if that is 0."""
    if not len(rows):
        return
    keys, k, t, n = table.keys, table.k, table.t, table.keys.shape[1]
    chunks, row_work = -(-n // CHUNK), table.steps * layout.room * 3
    here, results = np.full(len(rows), OPEN), np.empty((len(rows), layout.room))

    groups = far_items.groups.py_func(n, NEAR_PER_STEP * max(table.steps, 1))
    part = CHUNK if groups <= CHUNK else n
    lows = np.empty((len(rows), -(-n // part)))
    maxima = np.empty((*lows.shape, groups), keys.dtype)
    in_blocks(full_path.look, lows.size, min(part, n), rows, keys, k, part, maxima, lows)

    room = near_and_far.index_room(n, max(table.steps, 1)) if length > 0 else n + 1
    where = states, places, layout, here
    in_blocks(full_path.choose, len(rows), n, rows, keys, k, t, length, maxima, lows, room, *where)
    partial = np.empty((len(rows), chunks, length))
    if length > 0:
        in_blocks(full_path.decay, len(rows) * chunks, 2 * min(CHUNK, n), rows, keys, t, *where, partial)
    arguments = rows, k, t, keys.itemsize
    in_blocks(full_path.recur, len(rows), _MORE * row_work, *arguments, False, *where, partial, results)
    if (here == INEXACT).any():
        in_blocks(full_path.recur, len(rows), _MORE * row_work, *arguments, True, *where, partial, results)
        in_blocks(full_path.with_32_digits, len(rows), 100 * row_work, rows, k, t, *where, results)

    paths[rows], solved = here, here >= NODES
    states[places, state.SOLVED] = np.where(solved, _FULL, 0)
    if solved.any():
        yield _Solved(rows[solved], states, places[solved], layout, results[solved])


def _write(table: Table, part: _Solved, out: np.ndarray) -> None:
    chunks = -(-table.keys.shape[1] // CHUNK)
    arguments = part.rows, table.keys, table.k, table.at, table.mode, chunks, *part[1:4], part.results, out
    in_blocks(full_path.write, len(part.rows) * chunks, table.work, *arguments)


def _full_backward(table: Table, part: _Solved, g: np.ndarray, out: np.ndarray, grad_t: np.ndarray) -> None:
    keys, count, chunks = table.keys, len(part.rows), -(-table.keys.shape[1] // CHUNK)
    depth, room = 1 if table.mode == SUM else table.steps, part.layout.room
    partial, grad_p = np.empty((count, chunks, depth, MOST_NODES)), np.empty((count, depth, room))
    slopes, grads = np.empty((count, 1 + depth, MOST_NODES)), np.empty((count, room))
    near_t, far_t = np.empty(count), np.empty((count, chunks))
    where, work = (part.states, part.places, part.layout), table.work
    about = part.rows, keys, table.k
    in_blocks(full_backward.project, count * chunks, work, *about, table.at, table.mode, g, *where, partial, grad_p)
    most = float(np.finfo(keys.dtype).max)
    arguments = part.rows, table.k, table.t, table.mode, most, *where, partial, grad_p, slopes, grads, near_t
    in_blocks(full_backward.sweep, count, _MORE * table.steps * room, *arguments)
    arguments = table.t, table.at, table.mode, g, *where, slopes, grads, out, far_t
    in_blocks(full_backward.combine, count * chunks, work, *about, *arguments)
    grad_t[part.rows] = np.clip(near_t + far_t.sum(1), -LARGEST, LARGEST)
