"""One very long row over all threads: the passes over its n items in chunks, the recursion between them on one thread.

It is done so also if there is one thread only: of the same loops in another place, as in `quick` and `rows`, the
compiler may make other machine code, which rounds otherwise. So the result is the same whatever the number of threads.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from khot._jit import pool
from khot._jit.compiler import allocates, fma, shared
from khot.topk.successive._compiled import far_items as passive
from khot.topk.successive._compiled import full_path as rows
from khot.topk.successive._compiled import near_and_far as split
from khot.topk.successive._compiled import retries as solution
from khot.topk.successive._compiled.constants import SUM
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.near_and_far import ACTIVE

_NOWHERE = np.empty(0, np.int64)


@shared
@allocates
def _look(first, last, row, maxima):
    """The maxima of chunks. Returns whether none has a NaN."""
    sound = True
    for c in range(first, last):
        sound &= passive.maxima_of(row, *_chunk(c, row), maxima[c])
    return sound


@shared
@allocates
def _decay(first, last, row, t, bar, u, partial):
    split.decay(row, t, bar, u, first, last, partial)
    return 0


@shared
@allocates
def _evaluate(first, last, u, table, out):
    for c in range(first, last):
        passive.evaluate(u, *_chunk(c, u), table, out)
    return 0


@shared
@allocates
def _project(first, last, solved, g, partial):
    rows.project(solved, g, first, last, partial)
    return 0


@shared
@allocates
def _combine(first, last, u, rest, g, table, out):
    for c in range(first, last):
        passive.combine(u, *_chunk(c, u), rest, g, table, out)
    return 0


@fma
def _chunk(c, row):
    """Where a chunk begins and ends."""
    return c * CHUNK, min((c + 1) * CHUNK, row.shape[0])


def worthwhile(n: int, k: int) -> bool:
    """Whether a row has chunks for several threads."""
    return n >= 4 * CHUNK and k > 0 and passive.groups(n, ACTIVE * k) <= CHUNK


def each(function: Callable[[int, bool], None], rows: Sequence[int]) -> None:
    """Call function(row, alone) for rows: with all threads for each row, or alone if there is a row for each thread."""
    if len(rows) < pool.threads():
        for b in rows:
            function(b, False)
    else:
        pool.each(lambda b: function(b, True), rows)


def forward(row: np.ndarray, k: int, t: float, out: np.ndarray, state: np.ndarray, alone: bool) -> int:
    """What `rows.forward_row` does for the k-hot vector, out (n,); returns -1 if it gave up."""
    space = _space(len(row), k)
    u, state = solution.divided(state, np.empty_like(row) if len(state) == 0 else row)
    maxima = np.empty((-(-len(row) // CHUNK), passive.groups(len(row), ACTIVE * k)), row.dtype)
    sound = _in_chunks(_look, alone, len(row), row, maxima)
    if k <= 0 or split.dense(len(row), k) or not 0 < t < np.inf or not sound or maxima.max() == np.inf:
        return -1
    parts = split.largest_active(row, k, maxima.max(0), u, space)
    if parts.bar == -np.inf:
        return -1
    partial = np.empty((len(maxima), split.nodes_first(row, t)))
    _in_chunks(_decay, alone, len(row), row, t, parts.bar, u, partial)
    parts = parts._replace(moments=split.total(partial, space))
    solved = solution.solve(row, k, t, parts, len(state) > 0, False, state, space)
    if len(solved.split.moments) == 0:
        return -1
    table = rows.result_coefficients(solved, space)
    _in_chunks(_evaluate, alone, len(row), u, table, out)
    out[parts.index] = solved.result[: len(parts.index)]
    return solved.path


def backward(k: int, t: float, g: np.ndarray, out: np.ndarray, state: np.ndarray, alone: bool) -> None:
    """What `quick.backward` does for a row with a state; g is (1, n), out (n,)."""
    space = _space(len(out), k)
    u, state = solution.divided(state, out)
    solved = solution.load(k, u, state, space)
    chunks, length = -(-len(out) // CHUNK), len(solved.split.moments)
    partial = np.empty((chunks if length else 0, 1, length))
    if length:
        _in_chunks(_project, alone, len(out), solved, g, partial)
    swept = rows.sweep(solved, k, t, SUM, _NOWHERE, g, partial, space)
    if length:
        rest, table = rows.slopes(solved, swept, k, t, SUM, space)
        _in_chunks(_combine, alone, len(out), u, rest, g[0], table[0], out)
    else:
        out[:] = 0
    rows.put(solved.split.index, swept.keys, out)


def _space(n: int, k: int) -> np.ndarray:
    space = np.empty(rows.scratch_size(n, k))
    space[0] = 1
    return space


def _in_chunks(function: Callable[..., int], alone: bool, n: int, *arguments: Any) -> int:
    """Call a shared function for the chunks of n items."""
    chunks = -(-n // CHUNK)
    return function(0, chunks, chunks, 1, *arguments) if alone else pool.in_blocks(function, chunks, CHUNK, *arguments)
