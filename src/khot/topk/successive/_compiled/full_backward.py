"""Gradients of the rows that took the full path, in stages like those of `full_path`.

project    cotangents of near items, moments of the far ones    each chunk
sweep      the recursion backwards                              each row
combine    gradients                                            each chunk
"""

import numpy as np

from khot._jit.compiler import allocates, fma, kernel
from khot._jit.vector_math import inverse
from khot.topk.successive._compiled import far_items, interpolation, recursion, state
from khot.topk.successive._compiled.constants import ENTRIES, SUM
from khot.topk.successive._compiled.fast_path import put
from khot.topk.successive._compiled.full_path import chunk, coefficients, place, power_sum
from khot.topk.successive._compiled.state import MOST_NODES


@kernel
@allocates
def project(first, last, rows, keys, k, at, mode, g, states, places, layout, partial, grad_p):
    """Fill in the cotangents of p at near items, grad_p (rows, ., room), and the moments of each chunk at far items."""
    for unit in range(first, last):
        slot, c = unit // partial.shape[1], unit % partial.shape[1]
        b, own = rows[slot], states[places[slot]]
        if mode == ENTRIES:
            _project_entries(keys[b], k[b], at[b], g[b, 0], own, layout, partial[slot, c], grad_p[slot])
        else:
            _project(keys[b], c, g[b], own, layout, partial[slot, c], grad_p[slot])
    return 0


@fma
def _project(row, c, g, own, layout, partial, grad_p):
    near, length = state.sizes(own)
    start, stop = chunk(c, row.shape[0])
    index = state.index(own, layout)
    for r in range(grad_p.shape[0]):
        if length > 0:
            for d in range(length):
                partial[r, d] = 0.0
            far_items.project(g[r], state.u(own, layout, row), start, stop, partial[r, :length])
        for i in range(near):
            if start <= index[i] < stop:
                grad_p[r, i] = g[r, index[i]]


@fma
def _project_entries(row, k, at, g, own, layout, partial, grad_p):
    near, length = state.sizes(own)
    index, u = state.index(own, layout), state.u(own, layout, row)
    for r in range(k):
        for i in range(near):
            grad_p[r, i] = 0.0
        for d in range(length):
            partial[r, d] = 0.0
        i = place(index, near, at[r])
        if i >= 0:
            grad_p[r, i] = g[r]
        elif at[r] >= 0 and length > 0:
            power = np.float64(u[at[r]])
            for d in range(length):
                partial[r, d] = g[r] * power
                power *= u[at[r]]


@kernel
@allocates
def sweep(first, last, rows, k, t, mode, most, states, places, layout, partial, grad_p, slopes, grads, grad_t):
    """Run the recursion backwards: gradients of near items, and the coefficients for those of far items.

    `slopes` (rows, 1 + ., MOST_NODES) has one row for the gradient through the sums, and one for each row of g. `most`
    is the largest number of the dtype of the keys.
    """
    spare, nodes = np.empty((2, layout.room)), np.empty((2, MOST_NODES))
    table = np.empty((layout.steps + 1, MOST_NODES))
    for slot in range(first, last):
        b, own = rows[slot], states[places[slot]]
        grad_t[slot] = _sweep(k[b], t[b], mode, own, layout, partial[slot], grad_p[slot], grads[slot], spare, nodes)
        _slopes(k[b], t[b], mode, most, own, layout, nodes[1], table, slopes[slot])
    return 0


@fma
def _sweep(k, t, mode, own, layout, partial, grad_p, grad, spare, nodes):
    """Fill in the gradients of near items, and in nodes[1] the cotangents of `many`; returns the cotangent of t."""
    near, length = state.sizes(own)
    many, weights, record, s = (
        state.many(own, layout),
        state.weights(own, layout),
        state.record(own, layout),
        inverse(t),
    )
    gaps, moments, grad_many = state.gaps(own, layout), nodes[0, :length], nodes[1, :length]
    for r in range((1 if mode == SUM else k) if length > 0 else 0):
        for d in range(length):
            moments[d] = 0.0
            for c in range(partial.shape[0]):
                moments[d] += partial[c, r, d]
        interpolation.at_nodes(moments, grad_p[r, near : near + length])
    grad_t = 0.0
    if gaps.shape[0] > 0:
        grad_t = recursion.backward_with_t(
            k, s, near, many, weights, record, gaps, grad_p, spare[0], spare[1], grad, grad_many
        )
    else:
        recursion.backward(k, s, near, many, weights, record, grad_p, spare[0], grad, grad_many)
    return grad_t


@fma
def _slopes(k, t, mode, most, own, layout, grad_many, table, slopes):
    length = int(own[state.LENGTH])
    if length > 0:
        interpolation.coefficients(grad_many[:length], slopes[0, :length])
        coefficients(k, mode, own, layout, table)
        for r in range(1 if mode == SUM else k):
            for d in range(length):
                slopes[1 + r, d] = table[r, d]
        for r in range(2 if mode == SUM else 1 + k):
            interpolation.slope(slopes[r, :length], inverse(t), most)


@kernel
@allocates
def combine(first, last, rows, keys, k, t, at, mode, g, states, places, layout, slopes, grads, out, grad_t):
    """Fill in the gradients in the keys and, if requested, the part from far items (rows, chunks) of that in t."""
    for unit in range(first, last):
        slot, c = unit // grad_t.shape[1], unit % grad_t.shape[1]
        b, own = rows[slot], states[places[slot]]
        _combine(keys[b], k[b], at[b], mode, c, g[b], own, layout, slopes[slot], out[b])
        grad_t[slot, c] = _in_temperature(keys[b], t[b], c, own, layout, out[b]) if layout.gap_rows > 0 else 0.0
        start, stop = chunk(c, keys.shape[1])
        put(state.index(own, layout), int(own[state.NEAR]), grads[slot], start, stop, out[b])
    return 0


@fma
def _combine(row, k, at, mode, c, g, own, layout, slopes, out):
    """Fill a chunk of the gradient at the far items of a row."""
    length = int(own[state.LENGTH])
    start, stop = chunk(c, row.shape[0])
    if length == 0:
        for i in range(start, stop):
            out[i] = 0.0
        return
    u = state.u(own, layout, row)
    if mode == ENTRIES:
        far_items.evaluate(u, start, stop, slopes[0, :length], out)
        most = np.finfo(out.dtype).max
        for j in range(k):
            if start <= at[j] < stop:
                x = out[at[j]] + g[0, j] * power_sum(slopes[1 + j, :length], np.float64(u[at[j]]))
                out[at[j]] = min(max(x, -most), most)
        return
    far_items.combine(u, start, stop, slopes[0, :length], g[0], slopes[1, :length], out)
    for r in range(1, g.shape[0]):
        if r < k:
            far_items.add_product(u, start, stop, g[r], slopes[1 + r, :length], out)


@fma
def _in_temperature(row, t, c, own, layout, out):
    """Part of the gradient in t from the far items of a chunk."""
    total, s, u = 0.0, inverse(t), state.u(own, layout, row)
    if own[state.LENGTH] > 0:
        start, stop = chunk(c, row.shape[0])
        for i in range(start, stop):
            if u[i] > 0:
                total -= out[i] * ((row[i] - own[state.THRESHOLD]) * s)
    return total
