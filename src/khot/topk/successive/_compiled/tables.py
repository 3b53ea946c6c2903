"""The successive softmax of tables of rows on the CPU, as functions of NumPy arrays, over all cores.

Most rows take a fast path (`dense_path` if all their items are near, else `fast_path`), the others the full path. The
result of a row does not depend on the number of threads or on other rows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from khot._jit.threads import in_blocks
from khot.topk.successive._compiled import (
    dense_path,
    far_items,
    fast_path,
    full_backward,
    full_path,
    near_and_far,
    state,
)
from khot.topk.successive._compiled.constants import (
    ALL,
    BAD,
    COLD,
    EMPTY,
    INEXACT,
    LARGEST,
    NODES,
    OPEN,
    SUM,
)
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.near_and_far import NEAR_PER_STEP
from khot.topk.successive._compiled.state import MOST_NODES, Layout

_KEPT = 8  # most weights that a state keeps for each item of the row; with more, it is cheaper to run again
_LONG = 4 * CHUNK  # rows from this length on are worth dividing among threads
_AT_ONCE = 2**22  # most numbers in the states of rows that are computed together
_EVERY_ROW = 1500  # fixed work for each row, in units of the work on one item
_MORE = 5  # how many times more work the full path is
_FULL = 1.0  # marks a state of the full path; states of the fast paths hold their path, and 0 means no state


class Table(NamedTuple):
    """Rows with their k and temperature, and the requested items."""

    keys: np.ndarray  # (rows, n), float32 or float64, contiguous
    k: np.ndarray  # (rows,), int64, at most `steps`
    t: np.ndarray  # (rows,), float64
    at: np.ndarray  # (rows, steps), int64, or (rows, 0) if no entries are requested
    steps: int
    mode: int

    @property
    def work(self) -> int:
        """Estimated work for a row on a fast path, in units of the work on one item."""
        n = self.keys.shape[1]
        return _EVERY_ROW + n + self.steps * min(n, NEAR_PER_STEP * self.steps)


class _Solved(NamedTuple):
    """Rows whose recursion ran on the full path, and where their states are."""

    rows: np.ndarray  # indices into the table
    states: np.ndarray
    places: np.ndarray  # index of the state of each row
    layout: Layout
    results: np.ndarray  # (rows, room), sums of p over the steps


def state_size(n: int, steps: int, itemsize: int) -> int:
    """Length of the state of a row for `backward`; 0 if it would be too long to keep."""
    layout = _kept_layout(n, steps)
    return 0 if steps * (layout.room - MOST_NODES) > _KEPT * n else state.size(layout, n, itemsize)


def _dense(n: int, k: Any) -> Any:
    """Whether all items of rows are near from the start."""
    return (n < near_and_far.DENSE * k) | (n * (k + 1) < near_and_far.SMALL)


def _kept_layout(n: int, steps: int) -> Layout:
    return Layout((n if _dense(n, steps) else (NEAR_PER_STEP + 1) * steps) + MOST_NODES, steps, steps, 0)


def forward(table: Table, out: np.ndarray, states: np.ndarray, paths: np.ndarray) -> int:
    """Fill the tables `out` (rows, ., .) of all rows, see `full_path`, and the path (rows,) each one took.

    States are float64 (rows, `state_size`, or 0 if no backward will follow). Tables of SHORT rows are left alone.
    Returns the lowest path.
    """
    if table.mode == SUM and table.keys.shape[1] < _LONG:
        lowest = _fast_forward(table, out, states, paths)
        if lowest > OPEN:
            return lowest
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
        _fast_backward(table, solved, g, states, out)
        if len(solved) and solved.min() >= NODES:
            return out, grad_t
        full, layout = np.flatnonzero(solved == _FULL), _kept_layout(table.keys.shape[1], table.steps)
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


def _by_density(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose items are all near from the start, and the others."""
    n, rows, none = table.keys.shape[1], np.arange(len(table.keys)), np.empty(0, np.int64)
    if len(rows) and table.k.min() == table.steps:
        return (rows, none) if _dense(n, table.steps) else (none, rows)
    dense = _dense(n, table.k)
    return rows[dense], rows[~dense]


def _fast_forward(table: Table, out: np.ndarray, states: np.ndarray, paths: np.ndarray) -> int:
    """Fill in the results, states and paths of all rows by the fast paths; returns the lowest path."""
    n, kept, lowest = table.keys.shape[1], states.shape[1], NODES
    layout = _kept_layout(n, table.steps) if kept else _kept_layout(n, table.steps)._replace(rows=2)
    size = kept or state.size(layout, n, table.keys.itemsize)
    arguments = table.keys, table.k, table.t, out, states, size, layout, paths
    for path, rows in zip((dense_path, fast_path), _by_density(table), strict=True):
        if len(rows):
            lowest = min(lowest, in_blocks(path.forward, len(rows), table.work, rows, *arguments))
    return lowest


def _fast_backward(table: Table, solved: np.ndarray, g: np.ndarray, states: np.ndarray, out: np.ndarray) -> None:
    """Fill in the gradients of the rows that one of the fast paths has solved."""
    layout = _kept_layout(table.keys.shape[1], table.steps)
    for path, module in ((NODES, fast_path), (ALL, dense_path)):
        rows = np.flatnonzero(solved == path)
        if len(rows):
            in_blocks(module.backward, len(rows), table.work, rows, table.k, table.t, g, states, layout, out)
            if len(rows) == len(out):
                return


def _again(table: Table, g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Gradients by running the fast paths again, some rows at a time; returns which rows are left (rows,)."""
    count, n = table.keys.shape
    size, left = state.size(_kept_layout(n, table.steps), n, table.keys.itemsize), np.empty(count, bool)
    step = max(1, _AT_ONCE // size)
    for start in range(0, count, step):
        here = slice(start, min(start + step, count))
        part = table._replace(keys=table.keys[here], k=table.k[here], t=table.t[here])
        paths = np.empty(len(part.keys), np.int64)
        states, results = np.empty((len(paths), size)), np.empty((len(paths), 1, n), part.keys.dtype)
        _fast_forward(part, results, states, paths)
        _fast_backward(part, paths, g[here], states, out[here])
        left[here] = paths == OPEN
    return left


def _solve(
    table: Table, rows: np.ndarray, keep: bool, want_t: bool, states: np.ndarray, paths: np.ndarray
) -> Iterator[_Solved]:
    """Run rows through the recursion, in groups, until their results can be trusted; fills in their paths.

    The rungs of the ladder: with nodes for the far items, in `states` if there are any; with nodes, in memory of their
    own, which has room for more near items; with all items near. On each rung, rows whose rounding errors may have
    grown too large go through the recursion with 32 digits.
    """
    n, steps = table.keys.shape[1], table.steps
    gap_rows, weight_rows = steps if want_t else 0, steps if keep else 2
    with_nodes = rows[~_dense(n, table.k[rows])]
    if states.shape[1] > 0:
        warm = with_nodes[table.t[with_nodes] >= COLD] if table.keys.itemsize == 4 else with_nodes[:0]
        yield from _rung(table, warm, MOST_NODES // 2, states, warm, _kept_layout(n, steps), paths)
        with_nodes = with_nodes[paths[with_nodes] < 0]
        yield from _rung(table, with_nodes, MOST_NODES, states, with_nodes, _kept_layout(n, steps), paths)
        with_nodes = with_nodes[paths[with_nodes] < 0]
    nodes = Layout(2 * NEAR_PER_STEP * steps + MOST_NODES, weight_rows, steps, gap_rows)
    yield from _in_parts(table, with_nodes, MOST_NODES, nodes, paths)
    rest = rows[paths[rows] < 0]
    if states.shape[1] > 0 and _kept_layout(n, steps).room >= n:
        yield from _rung(table, rest, 0, states, rest, _kept_layout(n, steps), paths)
    else:
        yield from _in_parts(table, rest, 0, nodes._replace(room=n), paths)


def _in_parts(table: Table, rows: np.ndarray, length: int, layout: Layout, paths: np.ndarray) -> Iterator[_Solved]:
    """Run a rung in memory of its own, some rows at a time."""
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
