"""The k-hot vectors of most rows in one go: one kernel for each direction, at temperatures at which errors do not grow.

It does what `full_path` does in stages, and leaves a row where something is out of the ordinary: NaN, many equal keys,
weights that underflow, nodes that do not suffice. All arrays are made once for a block of rows: on short rows
allocations and views take longer than arithmetic.
"""

import math
from typing import NamedTuple

import numpy as np

from khot._jit.compiler import allocates, fma, kernel
from khot._jit.passes import largest
from khot._jit.vector_math import inverse
from khot.topk.successive._compiled import far_items, interpolation, near_and_far, recursion, state
from khot.topk.successive._compiled.constants import COLD, NODES, OPEN, TRUNCATED
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.near_and_far import NEAR_PER_STEP
from khot.topk.successive._compiled.recursion import FINE
from khot.topk.successive._compiled.state import MOST_NODES


class Workspace(NamedTuple):
    """Arrays for one row at a time, of at most M items."""

    maxima: np.ndarray  # (groups,)
    result: np.ndarray  # (M,)
    nodes: np.ndarray  # (3, MOST_NODES)
    grads: np.ndarray  # (3, M)


@allocates
def _workspace(n, steps, room, like):
    groups = far_items.groups(n, NEAR_PER_STEP * steps)
    return Workspace(np.empty(groups, like.dtype), np.empty(room), np.empty((3, MOST_NODES)), np.empty((3, room)))


@kernel
@allocates
def forward(first, last, rows, keys, k, t, out, states, own_size, layout, paths):
    """Fill the k-hot vectors of some of the `rows`, their states and paths; returns the lowest path.

    The path of a row that is left to the full path is OPEN. Without states, (rows, 0), each row uses the same memory.
    """
    kept, lowest = states.shape[1] > 0, NODES
    workspace = _workspace(keys.shape[1], layout.steps, layout.room, keys)
    own = np.empty(0 if kept else own_size)
    for b in rows[first:last]:
        ordinary = k[b] > 0 and COLD <= t[b] < math.inf
        here = states[b] if kept else own
        paths[b] = _forward(keys[b], k[b], t[b], out[b, 0], here, layout, workspace) if ordinary else OPEN
        if kept:
            here[state.SOLVED] = max(paths[b], 0)
        lowest = min(lowest, paths[b])
    return lowest


@fma
def _forward(row, k, t, out, own, layout, workspace):
    """Fill out (n,) and the state of a row; returns its path."""
    n, index, u = row.shape[0], state.index(own, layout), state.u(own, layout, row)
    maxima = workspace.maxima[: far_items.groups(n, NEAR_PER_STEP * k)]
    sound = far_items.maxima_of(row, 0, n, maxima)
    top, threshold = np.float64(largest(maxima)), np.float64(near_and_far.halfway(maxima, NEAR_PER_STEP * k))
    if not threshold > -math.inf or not sound:
        return OPEN
    near = far_items.above(row, threshold, maxima, index)
    most = min((NEAR_PER_STEP + 1) * k, layout.room - MOST_NODES)
    if not top < math.inf or not k <= near <= most:
        return OPEN
    length, status, result = near_and_far.fewest_nodes(row.itemsize, t), TRUNCATED, workspace.result
    weights, record = state.weights(own, layout), state.record(own, layout)
    own[state.NEAR], own[state.THRESHOLD] = near, threshold
    while status == TRUNCATED and length <= MOST_NODES:
        own[state.LENGTH] = length
        many = state.many(own, layout)
        _count(row, t, threshold, u, workspace.nodes[0, :length], workspace.nodes[2, :length], many)
        for i in range(near):
            result[i] = row[index[i]]
        recursion.weigh(result, near, length, threshold, top, inverse(t), weights)
        for i in range(near + length):
            result[i] = 0.0
        tolerance = near_and_far.tolerance(row.itemsize, t, length)
        status = recursion.multiply(weights, record, many, near, k, inverse(t), tolerance, result)
        length *= 2
    if status != FINE:
        return OPEN
    length = int(own[state.LENGTH])
    interpolation.coefficients(result[near : near + length], workspace.nodes[0, :length])
    far_items.evaluate(u, 0, n, workspace.nodes[0, :length], out)
    for i in range(near):
        out[index[i]] = result[i]
    return NODES


@fma
def _count(row, t, threshold, u, moments, partial, many):
    """Fill u, and how many items each node stands for."""
    for d in range(moments.shape[0]):
        moments[d] = 0.0
    for start in range(0, row.shape[0], CHUNK):  # chunk by chunk as in very long rows
        for d in range(moments.shape[0]):
            partial[d] = 0.0
        far_items.decay(row, start, min(start + CHUNK, row.shape[0]), threshold, inverse(t), u, partial)
        for d in range(moments.shape[0]):
            moments[d] += partial[d]
    interpolation.at_nodes(moments, many)


@kernel
@allocates
def backward(first, last, rows, k, t, g, states, layout, out):
    """Fill the gradients in the keys of some of the `rows`, for the cotangents g of their k-hot vectors."""
    workspace = _workspace(out.shape[1], layout.steps, layout.room, out)
    for b in rows[first:last]:
        _backward(k[b], t[b], g[b, 0], states[b], layout, out[b], workspace)
    return 0


@fma
def _backward(k, t, g, own, layout, out, workspace):
    n, s, (near, length) = out.shape[0], inverse(t), state.sizes(own)
    index, many, u = state.index(own, layout), state.many(own, layout), state.u(own, layout, out)
    weights, record = state.weights(own, layout), state.record(own, layout)
    moments, grad_many, grad_p = workspace.nodes[0, :length], workspace.nodes[1, :length], workspace.grads[:1]
    grad, entries, most = workspace.grads[1], workspace.nodes[2, :length], np.float64(np.finfo(out.dtype).max)
    _project(g, u, workspace.nodes[2, :length], moments)
    interpolation.at_nodes(moments, grad_p[0, near : near + length])
    for i in range(near):
        grad_p[0, i] = g[index[i]]
    recursion.backward(k, s, near, many, weights, record, grad_p, workspace.grads[2], grad, grad_many)
    for q in range(length):
        entries[q] = 0.0
    for j in range(k):
        for q in range(length):
            entries[q] += recursion.p_of(weights, record, j, near + q)
    interpolation.coefficients(entries, moments)
    interpolation.slope(moments, s, most)
    interpolation.coefficients(grad_many, entries)
    interpolation.slope(entries, s, most)
    far_items.combine(u, 0, n, entries, g, moments, out)
    put(index, near, grad, 0, n, out)


@fma
def _project(g, u, partial, moments):
    """Moments of the cotangent, chunk by chunk as in very long rows."""
    for d in range(moments.shape[0]):
        moments[d] = 0.0
    for start in range(0, g.shape[0], CHUNK):
        for d in range(moments.shape[0]):
            partial[d] = 0.0
        far_items.project(g, u, start, min(start + CHUNK, g.shape[0]), partial)
        for d in range(moments.shape[0]):
            moments[d] += partial[d]


@fma
def put(index, near, values, start, stop, out):
    """Put the values of near items from start to stop in their places, saturated."""
    most = np.finfo(out.dtype).max
    for i in range(near):
        if start <= index[i] < stop:
            x = most if values[i] > most else values[i]
            out[index[i]] = -most if x < -most else x
