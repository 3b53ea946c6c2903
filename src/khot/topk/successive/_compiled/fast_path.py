"""The successive softmax of most rows, the quick way: their k-hot vector at a temperature at which errors do not grow.

It does what `rows` does, with nodes or with all items active, and gives up where something is out of the ordinary:
absent items in a dense row, NaN, many equal keys, weights that underflow, nodes that do not suffice. Then `rows` must
do it. All arrays are made once for a block of rows: on short rows allocations and views take longer than arithmetic.
"""

import math
from typing import NamedTuple

import numpy as np

from khot._jit import passes
from khot._jit.compiler import allocates, fma, no_nan
from khot._jit.passes import largest
from khot._jit.vector_math import inverse, larger, smaller
from khot.topk.successive._compiled import far_items as passive
from khot.topk.successive._compiled import full_path as rows
from khot.topk.successive._compiled import interpolation, recursion
from khot.topk.successive._compiled import near_and_far as split
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.near_and_far import ACTIVE
from khot.topk.successive._compiled.recursion import COLUMNS, FINE, TRUNCATED
from khot.topk.successive._compiled.retries import ALL, HEADER, NODES, most_active, p_of, tolerance


class Desk(NamedTuple):
    """Arrays for one row at a time, of at most M items."""

    maxima: np.ndarray  # (groups,)
    index: np.ndarray  # (M,)  # pyright: ignore[reportIncompatibleMethodOverride]
    moments: np.ndarray  # (3, 8)
    result: np.ndarray  # (M,)
    weights: np.ndarray  # (2, M)
    record: np.ndarray  # (k, COLUMNS)
    grads: np.ndarray  # (3, M)


@allocates
def desk(keys, k):
    """For the rows of a table."""
    n, size = keys.shape[1], most_active(keys.shape[1], k) + 8
    maxima, index = np.empty(passive.groups(n, ACTIVE * k), keys.dtype), np.empty(size, np.int64)
    tables = np.empty((2, size)), np.empty((k, COLUMNS)), np.empty((3, size))
    return Desk(maxima, index, np.empty((3, 8)), np.empty(size), tables[0], tables[1], tables[2])


@fma
def forward(row, k, t, out, u, state, desk):
    """What `rows.forward_row` does for the k-hot vector, out (n,); returns the path, or -1 if it gave up."""
    n, keep = row.shape[0], state.shape[0] > 0
    index = state[HEADER : HEADER + desk.index.shape[0]].view(np.int64) if keep else desk.index
    if split.dense(n, k):
        active, length, bar, top = n, 0, -math.inf, _largest_of_ordinary(row)
    else:
        maxima = desk.maxima[: passive.groups(n, ACTIVE * k)]
        sound = passive.maxima_of(row, 0, n, maxima)
        top, bar = np.float64(largest(maxima)), np.float64(split.halfway(maxima, ACTIVE * k))
        if not bar > -math.inf or not sound:
            return -1
        active, length = passive.above(row, bar, maxima, index), split.nodes_first(row, t)
    if not top < math.inf or active < k or active > most_active(n, k) or active + 8 > desk.result.shape[0]:
        return -1
    while True:
        status = _run(row, k, t, active, length, bar, top, u, index, state, desk)
        if status == TRUNCATED and length == 4:
            length = 8
        elif status == FINE:
            break
        else:
            return -1
    if keep:
        state[0], state[1], state[2], state[3] = 1.0, active, length, bar
    if length == 0:
        for i in range(n):
            out[i] = desk.result[i]
        return ALL
    interpolation.coefficients(desk.result[active : active + length], desk.moments[0, :length])
    passive.evaluate(u, 0, n, desk.moments[0, :length], out)
    for i in range(active):
        out[index[i]] = desk.result[i]
    return NODES


@fma
def _run(row, k, t, active, length, bar, top, u, index, state, desk):
    """The recursion with so many nodes; returns its status."""
    s, keep, size = inverse(t), state.shape[0] > 0, active + length
    start = HEADER + size
    stop = start + k * size
    weights = state[start:stop].reshape(k, size) if keep else desk.weights
    record = state[stop : stop + k * COLUMNS].reshape(k, COLUMNS) if keep else desk.record
    many = state[HEADER + active : start] if keep else desk.moments[1, :length]
    if length > 0:
        _add_up(row, bar, s, u, desk.moments[2, :length], desk.moments[0, :length])
        interpolation.at_nodes(desk.moments[0, :length], many)
    for i in range(active):
        desk.result[i] = row[i if active == row.shape[0] else index[i]]
    recursion.weigh(desk.result, active, length, bar, top, s, weights)
    for i in range(size):
        desk.result[i] = 0.0
    return recursion.multiply(weights, record, many, active, k, s, tolerance(row, t, length), desk.result)


@no_nan
def _largest_and_smallest(row):
    top = low = row[0]
    for i in range(row.shape[0]):
        top, low = larger(top, row[i]), smaller(low, row[i])
    return top, low


@fma
def _largest_of_ordinary(row):
    """The largest item of a row, inf if one is absent or not a finite number."""
    top, low = _largest_and_smallest(row)
    return np.float64(top) if low > -math.inf and not passes.has_nan(row, 0, row.shape[0]) else math.inf


@fma
def _add_up(row, bar, s, u, partial, moments):
    """Fill u and its moments, chunk by chunk as in very long rows."""
    for d in range(moments.shape[0]):
        moments[d] = 0.0
    for start in range(0, row.shape[0], CHUNK):
        for d in range(moments.shape[0]):
            partial[d] = 0.0
        passive.decay(row, start, min(start + CHUNK, row.shape[0]), bar, s, u, partial)
        for d in range(moments.shape[0]):
            moments[d] += partial[d]


@fma
def backward(k, t, g, u, state, out, desk):
    """What `rows.backward_row` does for the k-hot vector of a row with a state; g and out are (n,)."""
    n, s, active, length = out.shape[0], inverse(t), int(state[1]), int(state[2])
    start = HEADER + active + length
    stop = start + k * (active + length)
    index, many = state[HEADER : HEADER + active].view(np.int64), state[HEADER + active : start]
    weights = state[start:stop].reshape(k, active + length)
    record = state[stop : stop + k * COLUMNS].reshape(k, COLUMNS)
    moments, grad_many, grad = desk.moments[0, :length], desk.moments[1, :length], desk.grads[1]
    if length > 0:
        _project(g, u, desk.moments[2, :length], moments)
        interpolation.at_nodes(moments, desk.grads[0, active : active + length])
    for i in range(active):
        desk.grads[0, i] = g[i] if active == n else g[index[i]]
    recursion.backward(k, s, active, many, weights, record, desk.grads[:1], desk.grads[2], grad, grad_many)
    if length > 0:
        entries = desk.moments[2, :length]
        for q in range(length):
            entries[q] = 0.0
        for j in range(k):
            for q in range(length):
                entries[q] += p_of(weights, record, j, active + q)
        interpolation.coefficients(entries, moments)
        rows.slope(moments, s, out)
        interpolation.coefficients(grad_many, entries)
        rows.slope(entries, s, out)
        passive.combine(u, 0, n, entries, g, moments, out)
    elif active < n:
        out[:] = 0.0
    rows.put(index, grad, out)


@fma
def _project(g, u, partial, moments):
    """Moments of the cotangent, chunk by chunk as in very long rows."""
    for d in range(moments.shape[0]):
        moments[d] = 0.0
    for start in range(0, g.shape[0], CHUNK):
        for d in range(moments.shape[0]):
            partial[d] = 0.0
        passive.project(g, u, start, min(start + CHUNK, g.shape[0]), partial)
        for d in range(moments.shape[0]):
            moments[d] += partial[d]
