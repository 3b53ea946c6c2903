"""The k-hot vectors of rows whose items are all near: one kernel for each direction, where errors do not grow.

Like `fast_path`, it leaves a row to the full path if anything is unusual: absent items, NaN, weights that underflow.
"""

import math

import numpy as np

from khot._jit import passes
from khot._jit.compiler import allocates, fma, kernel, no_nan
from khot._jit.vector_math import inverse, larger, smaller
from khot.topk.successive._compiled import recursion, state
from khot.topk.successive._compiled.constants import ALL, COLD, OPEN
from khot.topk.successive._compiled.recursion import FINE


@kernel
@allocates
def forward(first, last, rows, keys, k, t, out, states, own_size, layout, paths):
    """Fill the k-hot vectors of some of the `rows`, their states and paths; returns the lowest path.

    The path of a row that is left to the full path is OPEN. Without states, (rows, 0), each row uses the same memory.
    """
    kept, lowest = states.shape[1] > 0, ALL
    result, own = np.empty(keys.shape[1]), np.empty(0 if kept else own_size)
    for b in rows[first:last]:
        ordinary = k[b] > 0 and COLD <= t[b] < math.inf
        here = states[b] if kept else own
        paths[b] = _forward(keys[b], k[b], t[b], out[b, 0], here, layout, result) if ordinary else OPEN
        if kept:
            here[state.SOLVED] = max(paths[b], 0)
        lowest = min(lowest, paths[b])
    return lowest


@fma
def _forward(row, k, t, out, own, layout, result):
    """Fill out (n,) and the state of a row; returns its path."""
    n, s, top = row.shape[0], inverse(t), _largest_of_ordinary(row)
    if not top < math.inf or k > n:
        return OPEN
    own[state.NEAR], own[state.LENGTH] = n, 0.0
    weights, record, many = state.weights(own, layout), state.record(own, layout), state.many(own, layout)
    for i in range(n):
        result[i] = row[i]
    recursion.weigh(result, n, 0, 0.0, top, s, weights)
    for i in range(n):
        result[i] = 0.0
    if recursion.multiply(weights, record, many, n, k, s, math.inf, result) != FINE:
        return OPEN
    for i in range(n):
        out[i] = result[i]
    return ALL


@no_nan
def _largest_and_smallest(row):
    top = low = row[0]
    for i in range(row.shape[0]):
        top, low = larger(top, row[i]), smaller(low, row[i])
    return top, low


@fma
def _largest_of_ordinary(row):
    """Largest item of a row; inf if an item is absent or not finite."""
    top, low = _largest_and_smallest(row)
    return np.float64(top) if low > -math.inf and not passes.has_nan(row, 0, row.shape[0]) else math.inf


@kernel
@allocates
def backward(first, last, rows, k, t, g, states, layout, out):
    """Fill the gradients in the keys of some of the `rows`, for the cotangents g of their k-hot vectors."""
    tables = np.empty((3, out.shape[1]))
    for b in rows[first:last]:
        _backward(k[b], t[b], g[b, 0], states[b], layout, out[b], tables)
    return 0


@fma
def _backward(k, t, g, own, layout, out, tables):
    n, most = out.shape[0], np.finfo(out.dtype).max
    grad_p, grad, many = tables[:1], tables[1], state.many(own, layout)
    weights, record = state.weights(own, layout), state.record(own, layout)
    for i in range(n):
        grad_p[0, i] = g[i]
    recursion.backward(k, inverse(t), n, many, weights, record, grad_p, tables[2], grad, many)
    for i in range(n):
        x = most if grad[i] > most else grad[i]
        out[i] = -most if x < -most else x
