"""One very long row over all threads: the passes over its n items in chunks, the recursion between them on one thread.

The chunks, and the order in which their sums are added, are those of `rows`, so that the result is the same.
"""

from collections.abc import Callable

import numpy as np

from khot.kernels import passive, pool, rows, solution, split
from khot.kernels.passive import CHUNK
from khot.kernels.rows import SUM
from khot.kernels.solution import NODES, Solved
from khot.kernels.split import ACTIVE, DENSE, Split, Survey

_NOWHERE = np.empty(0, np.int64)


def worthwhile(count: int, n: int) -> bool:
    """Whether there are too few rows for the threads, and they are long."""
    return n >= 4 * CHUNK and count < pool.threads()


def forward(row: np.ndarray, k: int, t: float, out: np.ndarray, state: np.ndarray) -> int:
    """What `rows.forward_row` does for the k-hot vector; out is (1, n)."""
    solved = _solve(row, k, t, state)
    if solved is None:
        return rows.forward_row(row, k, t, SUM, _NOWHERE, out, state)
    table = rows.result_coefficients(solved)
    _in_chunks(len(row), lambda c, first, last: passive.evaluate(solved.split.u, first, last, table, out[0]))
    out[0, solved.split.index] = solved.result[: len(solved.split.index)]
    return NODES


def backward(row: np.ndarray, k: int, t: float, g: np.ndarray, out: np.ndarray, state: np.ndarray) -> float:
    """What `rows.backward_row` does for the k-hot vector, without a gradient in t; g is (1, n)."""
    if len(state) == 0 or state[0] == 0 or state[2] == 0:
        return rows.backward_row(row, k, t, SUM, _NOWHERE, g, False, out, state)
    solved = solution.load(row, k, t, state)
    _decay(row, t, solved.split, np.empty((-(-len(row) // CHUNK), 0)))
    partial = np.zeros((-(-len(row) // CHUNK), 1, len(solved.split.moments)))
    _in_chunks(len(row), lambda c, first, last: rows.project(solved, g, c, c + 1, partial))
    swept = rows.sweep(solved, k, t, SUM, _NOWHERE, g, partial)
    _in_chunks(len(row), lambda c, first, last: rows.combine(solved, swept, k, t, SUM, g, c, c + 1, out))
    return rows.finish(row, solved, swept, t, False, out)


def _solve(row: np.ndarray, k: int, t: float, state: np.ndarray) -> Solved | None:
    """The row after its recursion, or None if it does not go with the series."""
    n, width = len(row), passive.width(len(row), ACTIVE * k)
    maxima, counts = np.empty(-(-n // width), row.dtype), np.zeros((-(-n // CHUNK), 2), np.int64)

    def scan(c: int, first: int, last: int) -> None:
        counts[c] = passive.scan(row, first, last, width, maxima)

    _in_chunks(n, scan)
    nan, absent = counts.sum(0)
    seen = Survey(n - absent, nan, maxima.max())
    if solution.trivial(seen, k, t) >= 0 or seen.present < DENSE * k:
        return None
    index, partial = passive.choose(row, ACTIVE * k, width, maxima), np.empty((len(counts), split.nodes_first(row)))
    parts = Split(index, split.lowest(row, index), np.empty_like(row), np.empty(0))
    _decay(row, t, parts, partial)
    parts = parts._replace(moments=split.total(partial))
    solved = solution.solve(row, k, t, seen, parts, len(state) > 0, False, state)
    return solved if solved.path == NODES else None


def _decay(row: np.ndarray, t: float, parts: Split, partial: np.ndarray) -> None:
    _in_chunks(len(row), lambda c, first, last: split.decay(row, t, parts, c, c + 1, partial))


def _in_chunks(n: int, function: Callable[[int, int, int], None]) -> None:
    """Call function(c, first, last) on every chunk c of range(n)."""
    pool.each(lambda c: function(c, c * CHUNK, min(c * CHUNK + CHUNK, n)), range(-(-n // CHUNK)))
