"""One very long row over all threads: the passes over its n items in chunks, the recursion between them on one thread.

The chunks, and the order in which their sums are added, are those of `quick` and `rows`: so the result is the same.
"""

from collections.abc import Callable

import numpy as np

from khot.kernels import passive, pool, rows, solution, split
from khot.kernels.constants import SUM
from khot.kernels.passive import CHUNK
from khot.kernels.split import ACTIVE

_NOWHERE = np.empty(0, np.int64)


def worthwhile(count: int, n: int, k: int) -> bool:
    """Whether there are too few rows for the threads, and they are long."""
    return n >= 4 * CHUNK and count < pool.threads() and k > 0 and passive.groups(n, ACTIVE * k) <= CHUNK


def forward(row: np.ndarray, k: int, t: float, out: np.ndarray, state: np.ndarray) -> int:
    """What `rows.forward_row` does for the k-hot vector, out (n,); returns -1 if it gave up."""
    space = _space(len(row), k)
    u, state = solution.divided(state, np.empty_like(row) if len(state) == 0 else row)
    maxima = np.empty((-(-len(row) // CHUNK), passive.groups(len(row), ACTIVE * k)), row.dtype)
    nan = np.empty(len(maxima), bool)

    def look(c: int, first: int, last: int) -> None:
        nan[c] = passive.has_nan(row, first, last)
        passive.maxima_of(row, first, last, maxima[c])

    _in_chunks(len(row), look)
    if k <= 0 or split.dense(len(row), k) or not 0 < t < np.inf or nan.any() or maxima.max() == np.inf:
        return -1
    parts = split.largest_active(row, k, maxima.max(0), u, space)
    if parts.bar == -np.inf:
        return -1
    partial = np.empty((len(maxima), split.nodes_first(row, t)))
    _in_chunks(len(row), lambda c, first, last: split.decay(row, t, parts.bar, u, c, c + 1, partial))
    parts = parts._replace(moments=split.total(partial, space))
    solved = solution.solve(row, k, t, parts, len(state) > 0, False, state, space)
    if len(solved.split.moments) == 0:
        return -1
    table = rows.result_coefficients(solved, space)
    _in_chunks(len(row), lambda c, first, last: passive.evaluate(u, first, last, table, out))
    out[parts.index] = solved.result[: len(parts.index)]
    return solved.path


def backward(k: int, t: float, g: np.ndarray, out: np.ndarray, state: np.ndarray) -> None:
    """What `quick.backward` does for a row with a state; g is (1, n), out (n,)."""
    space = _space(len(out), k)
    u, state = solution.divided(state, out)
    solved = solution.load(k, u, state, space)
    chunks, length = -(-len(out) // CHUNK), len(solved.split.moments)
    partial = np.empty((chunks if length else 0, 1, length))
    if length:
        _in_chunks(len(out), lambda c, first, last: rows.project(solved, g, c, c + 1, partial))
    swept = rows.sweep(solved, k, t, SUM, _NOWHERE, g, partial, space)
    if length:
        rest, table = rows.slopes(solved, swept, k, t, SUM, space)
        _in_chunks(len(out), lambda c, first, last: passive.combine(u, first, last, rest, g[0], table[0], out))
    else:
        out[:] = 0
    rows.put(solved.split.index, swept.keys, out)


def _space(n: int, k: int) -> np.ndarray:
    space = np.empty(rows.scratch_size(n, k))
    space[0] = 1
    return space


def _in_chunks(n: int, function: Callable[[int, int, int], None]) -> None:
    """Call function(c, first, last) on every chunk c of range(n)."""
    pool.each(lambda c: function(c, c * CHUNK, min(c * CHUNK + CHUNK, n)), range(-(-n // CHUNK)))
