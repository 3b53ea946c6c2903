"""The successive softmax of one row: which items are active, the recursion, its results and its way back.

Results and cotangents of a row are tables: (1, n) for the k-hot vector, (k, n) for the k vectors apart, and (1, k) for
single entries, the j-th vector's at the item `at[j]` (none if that is -1).
"""

import math
from typing import NamedTuple

import numpy as np

from khot.kernels import nodes, passive, precise, recursion
from khot.kernels.compiled import exact
from khot.kernels.elementary import largest
from khot.kernels.passive import CHUNK
from khot.kernels.recursion import FINE, HEAD, INEXACT, P_HEAD, TO_P, TRUNCATED, Steps, saturate

ACTIVE = 2  # active items for each of the k steps
DENSE = 8  # rows with fewer than this many items for each step have only active ones
COLD = 0.5  # below this temperature errors grow, and rows are computed in float64 throughout
COLDEST, WIDEST = 0.05, 50.0  # accuracy is promised down to this temperature and up to this range of the keys
KEPT = 8  # numbers of a state for each item of the row, at most

SUM, VECTORS, ENTRIES = 0, 1, 2  # what is asked for
BAD, EMPTY, SHORT, NODES, ALL, PRECISE = range(6)  # the paths a row can take

_U4, _U8 = (nodes.nodes(length) for length in nodes.LENGTHS)
_TO_CHEBYSHEV4, _TO_CHEBYSHEV8 = (nodes.to_chebyshev(length) for length in nodes.LENGTHS)
_IN_POWERS4, _IN_POWERS8 = (nodes.chebyshev_in_powers(length) for length in nodes.LENGTHS)


class Survey(NamedTuple):
    """What a first look at a row tells."""

    present: int
    nan: int
    largest: float


class Split(NamedTuple):
    """Active items, and what is to be known of the rest; u and moments of length 0 if there is no rest."""

    index: np.ndarray  # (active,) ascending  # pyright: ignore[reportIncompatibleMethodOverride]
    threshold: float  # the smallest active key
    u: np.ndarray  # (n,), exp((key - threshold) / t), 0 at the active items
    moments: np.ndarray  # (D,), the sums of u, u^2, ...


class Solved(NamedTuple):
    """A row that went through the recursion: its M items are the active ones, then D nodes."""

    path: int
    split: Split
    many: np.ndarray  # (M,)
    steps: Steps
    result: np.ndarray  # (M,), the sum of p over the steps


class Swept(NamedTuple):
    """Cotangents of the keys (M,), of how many items a node stands for (M,), of t."""

    keys: np.ndarray
    many: np.ndarray
    t: float


@exact
def survey(row, k):
    """A first look, and the maxima of groups of items."""
    width = passive.width(row.shape[0], ACTIVE * k)
    maxima = np.empty((row.shape[0] + width - 1) // width, row.dtype)
    nan, absent = passive.scan(row, 0, row.shape[0], width, maxima)
    return Survey(row.shape[0] - absent, nan, largest(maxima)), maxima


@exact
def trivial(seen, k, t):
    """The path of a row that needs no recursion, or -1."""
    if seen.nan > 0 or seen.largest == math.inf or not 0.0 < t < math.inf:
        return BAD
    if k == 0:
        return EMPTY
    return SHORT if seen.present < k else -1


@exact
def everything(row, present):
    """All present items active."""
    index = np.empty(present, np.int64)
    count = 0
    for i in range(row.shape[0]):
        if row[i] > -math.inf:
            index[count] = i
            count += 1
    return Split(index, 0.0, np.empty(0, row.dtype), np.empty(0))


@exact
def lowest(row, index):
    """The smallest of some items."""
    result = math.inf
    for i in index:
        result = min(result, row[i])
    return result


@exact
def split(row, k, t, seen, maxima):
    """The largest items active, the rest passive, if there are enough of them."""
    n, size = row.shape[0], ACTIVE * k
    if seen.present < DENSE * k:
        return everything(row, seen.present)
    index = passive.choose(row, size, passive.width(n, size), maxima)
    parts = Split(index, lowest(row, index), np.empty(n, row.dtype), np.empty(nodes_first(row)))
    return with_moments(row, t, parts, parts.moments.shape[0])


@exact
def nodes_first(row):
    """How many nodes are tried first."""
    return 4 if row.itemsize == 4 else 8


@exact
def with_moments(row, t, parts, length):
    """The split with u and so many moments."""
    partial = np.empty(((row.shape[0] + CHUNK - 1) // CHUNK, length))
    decay(row, t, parts, 0, partial.shape[0], partial)
    return Split(parts.index, parts.threshold, parts.u, total(partial))


@exact
def decay(row, t, parts, first, last, partial):
    """Fill u, and the moments of every chunk, for a range of chunks."""
    threshold, s = row.dtype.type(parts.threshold), row.dtype.type(recursion.sharpness(t))
    for c in range(first, last):
        sums = np.zeros(partial.shape[1])
        passive.decay(row, c * CHUNK, min(c * CHUNK + CHUNK, row.shape[0]), threshold, s, parts.index, parts.u, sums)
        for d in range(sums.shape[0]):
            partial[c, d] = sums[d]


@exact
def total(partial):
    """Sum over chunks, in their order."""
    result = np.zeros(partial.shape[1])
    for c in range(partial.shape[0]):
        for d in range(result.shape[0]):
            result[d] += partial[c, d]
    return result


@exact
def _u(length):
    return _U4 if length == 4 else _U8


@exact
def _coefficients(values, result):
    """Of the polynomial in u that has these values, times u, at the nodes."""
    length = values.shape[0]
    u, to_chebyshev = _u(length), _TO_CHEBYSHEV4 if length == 4 else _TO_CHEBYSHEV8
    in_powers = _IN_POWERS4 if length == 4 else _IN_POWERS8
    for d in range(length):
        result[d] = 0.0
    for m in range(length):
        chebyshev = 0.0
        for q in range(length):
            chebyshev += to_chebyshev[m, q] * (values[q] / u[q])
        for d in range(m + 1):
            result[d] += in_powers[m, d] * chebyshev


@exact
def _at_nodes(moments, out):
    """The adjoint of `_coefficients`."""
    length = moments.shape[0]
    u, to_chebyshev = _u(length), _TO_CHEBYSHEV4 if length == 4 else _TO_CHEBYSHEV8
    in_powers = _IN_POWERS4 if length == 4 else _IN_POWERS8
    for q in range(length):
        out[q] = 0.0
    for m in range(length):
        chebyshev = 0.0
        for d in range(m + 1):
            chebyshev += in_powers[m, d] * moments[d]
        for q in range(length):
            out[q] += to_chebyshev[m, q] * chebyshev / u[q]


@exact
def _items(row, t, parts):
    """Keys (M,) of the recursion, and how many items each stands for."""
    active, length = parts.index.shape[0], parts.moments.shape[0]
    keys, many = np.empty(active + length), np.empty(active + length)
    for i in range(active):
        keys[i], many[i] = row[parts.index[i]], 1.0
    for q in range(length):
        keys[active + q] = parts.threshold + t * math.log(_u(length)[q])
    _at_nodes(parts.moments, many[active:])
    return keys, many


@exact
def _tolerance(row, length):
    """Up to which entry at a node, over t, the nodes stand for the passive items to 1e-7 or 1e-15."""
    if length == 0:
        return math.inf
    if length == 4:
        return 0.15
    return 0.7 if row.itemsize == 4 else 0.15


@exact
def _promise(row, seen, t):
    """Error up to which a result and its gradient can be trusted, or 0 where it need not be watched."""
    if t < COLDEST:
        return 0.0
    spread = seen.largest - passive.smallest(row)
    doubtful = spread <= WIDEST if t < COLD else 1e3 * t < spread < 1e12
    return (1e-11 if row.itemsize == 4 else 5e-13) if doubtful else 0.0


@exact
def solve(row, k, t, seen, parts, keep, keep_gaps, state):
    """Run the recursion until it can be trusted: with few nodes, more nodes, all items active; or with 32 digits.

    The steps are laid out in `state`, from which `load` brings them back, if there is room.
    """
    promise, rough, unit = _promise(row, seen, t), 1e-6 if row.itemsize == 4 else 1e-14, recursion.UNIT
    while True:
        keys, many = _items(row, t, parts)
        active, length = parts.index.shape[0], parts.moments.shape[0]
        steps = recursion.steps_in(_reserve(state, k, parts, keep, keep_gaps), k, keys.shape[0], keep, keep_gaps)
        result, tolerance = np.zeros(keys.shape[0]), _tolerance(row, length)
        status = recursion.forward(
            keys, many, active, parts.threshold, k, t, unit, rough, tolerance, promise, steps, result
        )
        if status == FINE and unit > 0.0:
            return Solved(NODES if length > 0 else ALL, parts, many, steps, result)
        if status == FINE:  # but for rounding errors
            for i in range(result.shape[0]):
                result[i] = 0.0
            precise.forward(keys, many, active, parts.threshold, k, t, steps, result)
            return Solved(PRECISE, parts, many, steps, result)
        if status == INEXACT and unit > 0.0:
            unit = 0.0
        elif status == TRUNCATED and length == 4:
            parts = with_moments(row, t, parts, 8)
        else:
            parts = everything(row, seen.present)


HEADER = 4  # numbers at the beginning of a state: whether it holds steps, how many are active, D, the threshold


@exact
def state_size(n, k):
    """Numbers that bring a row back, or 0 where they would be many and the recursion had better run again."""
    active = n if n < DENSE * k else ACTIVE * k + k
    if k * active > KEPT * n:
        return 0
    return HEADER + active + 8 + recursion.room_for(k, active + 8, True, False)


@exact
def _reserve(state, k, parts, keep, keep_gaps):
    active, length = parts.index.shape[0], parts.moments.shape[0]
    wanted = recursion.room_for(k, active + length, keep, keep_gaps)
    start = HEADER + active + length
    fits = state.shape[0] >= start + wanted
    if state.shape[0] > 0:
        state[0], state[1], state[2], state[3] = fits, active, length, parts.threshold
    if not fits:
        return np.empty(wanted)
    for i in range(active):
        state[HEADER + i] = parts.index[i]
    for d in range(length):
        state[HEADER + active + d] = parts.moments[d]
    return state[start:]


@exact
def load(row, k, t, state):
    """What `solve` left in a state; u is yet to be filled."""
    active, length = int(state[1]), int(state[2])
    start = HEADER + active + length
    index = np.empty(active, np.int64)
    for i in range(active):
        index[i] = int(state[HEADER + i])
    u = np.empty(row.shape[0] if length > 0 else 0, row.dtype)
    parts = Split(index, state[3], u, state[HEADER + active : start])
    steps = recursion.steps_in(state[start:], k, active + length, True, False)
    return Solved(NODES, parts, _items(row, t, parts)[1], steps, np.empty(0))


@exact
def p_of(steps, j, i):
    """p of item i of the recursion in step j."""
    return steps.record[j, P_HEAD] if steps.record[j, HEAD] == i else steps.weights[j, i] * steps.record[j, TO_P]


@exact
def coefficients(solved, k, mode):
    """Of the passive entries u C(u), one row a row of the result."""
    active, length = solved.split.index.shape[0], solved.split.moments.shape[0]
    values = np.zeros((1 if mode == SUM else k, length))
    for j in range(k):
        for q in range(length):
            values[0 if mode == SUM else j, q] += p_of(solved.steps, j, active + q)
    table = np.empty_like(values)
    for j in range(table.shape[0]):
        _coefficients(values[j], table[j])
    return table


@exact
def place(index, item):
    """Where an item stands among the active ones, or -1."""
    i = passive.position(index, item)
    return i if i < index.shape[0] and index[i] == item else -1


@exact
def forward_row(row, k, t, mode, at, out, state):
    """Fill the table of a row, and its state; returns the path it took. A SHORT row's table is left to the caller."""
    seen, maxima = survey(row, k)
    path = trivial(seen, k, t)
    if state.shape[0] > 0:
        state[0] = 0.0
    if path >= 0:
        out[:] = math.nan if path == BAD else 0.0
        return path
    keep = mode != SUM or state.shape[0] > 0
    solved = solve(row, k, t, seen, split(row, k, t, seen, maxima), keep, False, state)
    if solved.split.u.shape[0] == 0 or mode != SUM:
        out[:] = 0.0
    if mode == ENTRIES:
        _read_entries(solved, at[:k], out[0])
    else:
        _read_vectors(solved, k, mode, out)
    return solved.path


@exact
def result_coefficients(solved):
    """`coefficients` for the k-hot vector, which needs no steps."""
    result = np.empty(solved.split.moments.shape[0])
    _coefficients(solved.result[solved.split.index.shape[0] :], result)
    return result


@exact
def _read_vectors(solved, k, mode, out):
    index, u = solved.split.index, solved.split.u
    if mode == SUM:
        passive.evaluate(u, 0, u.shape[0], result_coefficients(solved), out[0])
        for i in range(index.shape[0]):
            out[0, index[i]] = solved.result[i]
        return
    table = coefficients(solved, k, mode)
    for j in range(k):
        passive.evaluate(u, 0, u.shape[0], table[j], out[j])
        for i in range(index.shape[0]):
            out[j, index[i]] = p_of(solved.steps, j, i)


@exact
def _read_entries(solved, at, out):
    table = coefficients(solved, at.shape[0], ENTRIES)
    for j in range(at.shape[0]):
        i = place(solved.split.index, at[j])
        if i >= 0:
            out[j] = p_of(solved.steps, j, i)
        elif at[j] >= 0 and solved.split.u.shape[0] > 0:
            u = solved.split.u[at[j]]
            for d in range(table.shape[1]):
                out[j] += table[j, d] * u ** (d + 1.0)


@exact
def backward_row(row, k, t, mode, at, g, want_t, out, state):
    """Gradient in the keys of a row, out (n,), for the cotangent g of its table; returns that in t, if wanted."""
    if state.shape[0] > 0 and state[0] > 0.0 and not want_t:
        solved = load(row, k, t, state)
        chunks = (solved.split.u.shape[0] + CHUNK - 1) // CHUNK
        decay(row, t, solved.split, 0, chunks, np.empty((chunks, 0)))
    else:
        seen, maxima = survey(row, k)
        if trivial(seen, k, t) >= 0:
            out[:] = 0.0
            return 0.0
        solved = solve(row, k, t, seen, split(row, k, t, seen, maxima), True, want_t, state[:0])
    n = solved.split.u.shape[0]
    if n == 0:
        out[:] = 0.0
    partial = np.zeros(((n + CHUNK - 1) // CHUNK, k if mode == VECTORS else 1, solved.split.moments.shape[0]))
    if mode != ENTRIES:
        project(solved, g, 0, partial.shape[0], partial)
    swept = sweep(solved, k, t, mode, at, g, partial)
    combine(solved, swept, k, t, mode, g, 0, partial.shape[0], out)
    if mode == ENTRIES:
        _add_entries(solved, t, at[:k], g[0], out)
    return finish(row, solved, swept, t, want_t, out)


@exact
def project(solved, g, first, last, partial):
    """Moments of the cotangent, for a range of chunks."""
    u = solved.split.u
    for c in range(first, last):
        for r in range(partial.shape[1]):
            sums = np.zeros(partial.shape[2])
            passive.project(g[r], u, c * CHUNK, min(c * CHUNK + CHUNK, u.shape[0]), sums)
            for d in range(sums.shape[0]):
                partial[c, r, d] = sums[d]


@exact
def sweep(solved, k, t, mode, at, g, partial):
    """The way back through the recursion."""
    parts = solved.split
    active, length = parts.index.shape[0], parts.moments.shape[0]
    rows = 1 if mode == SUM else k
    grad_p, moments = np.zeros((rows, active + length)), np.zeros(length)
    for r in range(rows):
        moments[:] = 0.0
        if mode != ENTRIES:
            for i in range(active):
                grad_p[r, i] = g[r, parts.index[i]]
            for c in range(partial.shape[0]):
                for d in range(length):
                    moments[d] += partial[c, r, d]
        elif at[r] >= 0:
            i = place(parts.index, at[r])
            if i >= 0:
                grad_p[r, i] = g[0, r]
            elif parts.u.shape[0] > 0:
                for d in range(length):
                    moments[d] = g[0, r] * parts.u[at[r]] ** (d + 1.0)
        _at_nodes(moments, grad_p[r, active:])
    grad, grad_many = np.empty(active + length), np.empty(active + length)
    grad_t = recursion.backward(k, t, solved.many, solved.steps, grad_p, grad, grad_many)
    return Swept(grad, grad_many, grad_t)


@exact
def _slopes(table, t, most):
    """Coefficients of d/du (u C(u)) / t, which a pass over passive items can hold."""
    result = np.empty_like(table)
    for r in range(table.shape[0]):
        for d in range(table.shape[1]):
            result[r, d] = min(max(table[r, d] * (d + 1) * recursion.sharpness(t), -most), most)
    return result


@exact
def combine(solved, swept, k, t, mode, g, first, last, out):
    """Gradient at the passive items, for a range of chunks."""
    u, active = solved.split.u, solved.split.index.shape[0]
    most = np.sqrt(np.finfo(u.dtype).max)
    rest = np.empty((1, solved.split.moments.shape[0]))
    _coefficients(swept.many[active:], rest[0])
    rest = _slopes(rest, t, most)[0]
    table = _slopes(coefficients(solved, k, mode), t, most)
    rows = 0 if mode == ENTRIES else table.shape[0]
    for c in range(first, last):
        passive.combine(u, c * CHUNK, min(c * CHUNK + CHUNK, u.shape[0]), rest, g[:rows], table, out)


@exact
def _add_entries(solved, t, at, g, out):
    u, table = solved.split.u, coefficients(solved, at.shape[0], ENTRIES)
    for j in range(at.shape[0]):
        if at[j] >= 0 and u.shape[0] > 0:
            for d in range(table.shape[1]):
                out[at[j]] += g[j] * table[j, d] * (d + 1.0) * u[at[j]] ** (d + 1.0) * recursion.sharpness(t)


@exact
def finish(row, solved, swept, t, want_t, out):
    """Put in the active items; returns the gradient in t."""
    index, threshold, u = solved.split.index, solved.split.threshold, solved.split.u
    grad_t, s = swept.t, recursion.sharpness(t)
    if want_t:
        for i in range(u.shape[0]):
            if u[i] > 0:
                grad_t -= out[i] * ((row[i] - threshold) * s)
    most = np.finfo(out.dtype).max
    for i in range(index.shape[0]):
        out[index[i]] = min(max(swept.keys[i], -most), most)
    return saturate(grad_t)
