"""The successive softmax of one row: its results and its way back.

Results and cotangents of a row are tables: (1, n) for the k-hot vector, (k, n) for the k vectors apart, and (1, k) for
single entries, the j-th vector's at the item `at[j]` (none if that is -1).
"""

import math
from typing import NamedTuple

import numpy as np

from khot._jit import passes
from khot._jit import workspace as scratch
from khot._jit.compiler import allocates, fma
from khot._jit.passes import largest
from khot._jit.vector_math import inverse
from khot.topk.successive._compiled import far_items as passive
from khot.topk.successive._compiled import interpolation, recursion
from khot.topk.successive._compiled import near_and_far as split
from khot.topk.successive._compiled.constants import ENTRIES, SUM, VECTORS
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.recursion import saturate
from khot.topk.successive._compiled.retries import BAD, EMPTY, SHORT, load, p_of, solve


class Swept(NamedTuple):
    """Cotangents of the keys (M,), of how many items a node stands for (D,), of t."""

    keys: np.ndarray
    many: np.ndarray
    t: float


@fma
def scratch_size(n, k):
    """Numbers that the work on a row usually takes."""
    active = n if split.dense(n, k) else 4 * k
    groups = passive.groups(n, split.ACTIVE * k)
    return 500 + 16 * active + 8 * k + 3 * groups + (n // groups + 1) * 3 * k


@allocates
def parted(row, k, t, u, space):
    """The row cut into active and passive items, and the path of a row that needs no recursion, or -1."""
    if not 0.0 < t < math.inf or k < 0 or passes.has_nan(row, 0, row.shape[0]):
        return BAD, split.everything(row[:0], u, space)
    if k == 0 or split.dense(row.shape[0], k):
        return judged(row, k, largest(row), split.everything(row, u, space))
    groups = passive.groups(row.shape[0], split.ACTIVE * k)
    maxima = scratch.numbers(space, groups).view(row.dtype)[:groups]
    passive.maxima_of(row, 0, row.shape[0], maxima)
    path, parts = judged(row, k, largest(maxima), split.largest_active(row, k, maxima, u, space))
    if path < 0 and parts.bar > -math.inf:
        parts = split.with_moments(row, t, parts, split.nodes_first(row, t), space)
    return path, parts


@allocates
def judged(row, k, top, parts):
    """The path of a row that needs no recursion, or -1, and its parts."""
    if top == math.inf:
        return BAD, parts
    if k == 0:
        return EMPTY, parts
    return SHORT if parts.bar == -math.inf and parts.index.shape[0] < k else -1, parts


@allocates
def coefficients(solved, k, mode, space):
    """Of the passive entries u C(u), one row a row of the result."""
    active, length = solved.split.index.shape[0], solved.split.moments.shape[0]
    rows = 1 if mode == SUM else k
    values, table = scratch.zeros(space, rows * length).reshape(rows, length), scratch.table(space, rows, length)
    for j in range(k):
        for q in range(length):
            values[0 if mode == SUM else j, q] += p_of(solved.steps.weights, solved.steps.record, j, active + q)
    for j in range(rows):
        interpolation.coefficients(values[j], table[j])
    return table


@fma
def place(index, item):
    """Where an item stands among the active ones, or -1."""
    for i in range(index.shape[0]):
        if index[i] == item:
            return i
    return -1


@allocates
def forward_row(row, k, t, mode, at, out, u, state, space):
    """Fill the table of a row, and u and its state; returns the path it took. A SHORT row's table is left alone."""
    scratch.clear(space)
    path, parts = parted(row, k, t, u, space)
    if state.shape[0] > 0:
        state[0] = 0.0
    if path >= 0:
        out[:] = math.nan if path == BAD else 0.0
        return path
    solved = solve(row, k, t, parts, mode != SUM or state.shape[0] > 0, False, state, space)
    if solved.split.moments.shape[0] == 0 or mode != SUM:
        out[:] = 0.0
    if mode == ENTRIES:
        _read_entries(solved, at[:k], out[0], space)
    else:
        _read_vectors(solved, k, mode, out, space)
    return solved.path


@allocates
def result_coefficients(solved, space):
    """`coefficients` for the k-hot vector, which needs no steps."""
    result = scratch.numbers(space, solved.split.moments.shape[0])
    interpolation.coefficients(solved.result[solved.split.index.shape[0] :], result)
    return result


@allocates
def _read_vectors(solved, k, mode, out, space):
    index, u, passives = solved.split.index, solved.split.u, solved.split.moments.shape[0] > 0
    if mode == SUM:
        if passives:
            passive.evaluate(u, 0, u.shape[0], result_coefficients(solved, space), out[0])
        for i in range(index.shape[0]):
            out[0, index[i]] = solved.result[i]
        return
    table = coefficients(solved, k, mode, space)
    for j in range(k):
        if passives:
            passive.evaluate(u, 0, u.shape[0], table[j], out[j])
        for i in range(index.shape[0]):
            out[j, index[i]] = p_of(solved.steps.weights, solved.steps.record, j, i)


@fma
def _power_sum(table, u):
    """table[0] u + table[1] u^2 + ..."""
    total, power = 0.0, u
    for d in range(table.shape[0]):
        total += table[d] * power
        power *= u
    return total


@allocates
def _read_entries(solved, at, out, space):
    table = coefficients(solved, at.shape[0], ENTRIES, space)
    for j in range(at.shape[0]):
        i = place(solved.split.index, at[j])
        if i >= 0:
            out[j] = p_of(solved.steps.weights, solved.steps.record, j, i)
        elif at[j] >= 0 and table.shape[1] > 0:
            out[j] = _power_sum(table[j], np.float64(solved.split.u[at[j]]))


@allocates
def backward_row(row, k, t, mode, at, g, want_t, out, u, state, space):
    """Gradient in the keys of a row, out (n,), for the cotangent g of its table; returns that in t, if wanted."""
    scratch.clear(space)
    if state.shape[0] > 0 and state[0] > 0.0 and not want_t:
        solved = load(k, u, state, space)
    else:
        path, parts = parted(row, k, t, u, space)
        if path >= 0:
            out[:] = 0.0
            return 0.0
        solved = solve(row, k, t, parts, True, want_t, state[:0], space)
    length = solved.split.moments.shape[0]
    chunks = (row.shape[0] + CHUNK - 1) // CHUNK if length > 0 else 0
    rows = k if mode == VECTORS else 1
    partial = scratch.numbers(space, chunks * rows * length).reshape(chunks, rows, length)
    if mode != ENTRIES:
        project(solved, g, 0, chunks, partial)
    swept = sweep(solved, k, t, mode, at, g, partial, space)
    if length == 0:
        out[:] = 0.0
    else:
        _combine(solved, swept, k, t, mode, at, g, out, space)
    grad_t = _in_temperature(row, solved, swept, t, out) if want_t else 0.0
    put(solved.split.index, swept.keys, out)
    return grad_t


@fma
def project(solved, g, first, last, partial):
    """Moments of the cotangent, for a range of chunks."""
    u = solved.split.u
    for c in range(first, last):
        for r in range(partial.shape[1]):
            sums = partial[c, r]
            for d in range(sums.shape[0]):
                sums[d] = 0.0
            passive.project(g[r], u, c * CHUNK, min(c * CHUNK + CHUNK, u.shape[0]), sums)


@allocates
def sweep(solved, k, t, mode, at, g, partial, space):
    """The way back through the recursion."""
    parts = solved.split
    active, length = parts.index.shape[0], parts.moments.shape[0]
    rows = 1 if mode == SUM else k
    grad_p, moments = scratch.zeros(space, rows * (active + length)), scratch.numbers(space, length)
    grad_p = grad_p.reshape(rows, active + length)
    for r in range(rows):
        for d in range(length):
            moments[d] = 0.0
        if mode != ENTRIES:
            for i in range(active):
                grad_p[r, i] = g[r, i if active == g.shape[1] else parts.index[i]]
            for c in range(partial.shape[0]):
                for d in range(length):
                    moments[d] += partial[c, r, d]
        elif at[r] >= 0:
            i = place(parts.index, at[r])
            if i >= 0:
                grad_p[r, i] = g[0, r]
            elif length > 0:
                power = np.float64(parts.u[at[r]])
                for d in range(length):
                    moments[d] = g[0, r] * power
                    power *= parts.u[at[r]]
        interpolation.at_nodes(moments, grad_p[r, active:])
    grad, flow = scratch.numbers(space, active + length), scratch.numbers(space, active + length)
    grad_many, many, steps, grad_t = scratch.numbers(space, length), solved.many[active:], solved.steps, 0.0
    s = inverse(t)
    if steps.gaps.shape[0] > 0:
        grad_t = recursion.backward_with_t(k, s, active, many, steps, grad_p, flow, grad, grad_many, space)
    else:
        recursion.backward(k, s, active, many, steps.weights, steps.record, grad_p, flow, grad, grad_many)
    return Swept(grad, grad_many, grad_t)


@fma
def slope(table, s, like):
    """Coefficients of d/du (u C(u)) / t in place of those of C, such that a pass over passive items can hold them."""
    most = np.finfo(like.dtype).max / 64.0
    for d in range(table.shape[0]):
        table[d] = min(max(table[d] * (d + 1) * s, -most), most)


@allocates
def slopes(solved, swept, k, t, mode, space):
    """Coefficients of the gradient at the passive items: of what comes through the sums, and of every row of g."""
    rest, s, u = scratch.numbers(space, solved.split.moments.shape[0]), inverse(t), solved.split.u
    interpolation.coefficients(swept.many, rest)
    slope(rest, s, u)
    table = coefficients(solved, k, mode, space)
    for r in range(table.shape[0]):
        slope(table[r], s, u)
    return rest, table


@allocates
def _combine(solved, swept, k, t, mode, at, g, out, space):
    """Gradient at the passive items."""
    u, n = solved.split.u, out.shape[0]
    rest, table = slopes(solved, swept, k, t, mode, space)
    if mode == ENTRIES:
        passive.evaluate(u, 0, n, rest, out)
        most = np.finfo(out.dtype).max
        for j in range(k):
            if at[j] >= 0:
                x = out[at[j]] + g[0, j] * _power_sum(table[j], np.float64(u[at[j]]))
                out[at[j]] = min(max(x, -most), most)
        return
    passive.combine(u, 0, n, rest, g[0], table[0], out)
    for r in range(1, table.shape[0]):
        passive.add_product(u, 0, n, g[r], table[r], out)


@fma
def _in_temperature(row, solved, swept, t, out):
    """The gradient in t, from those in the keys, before the active ones are put in."""
    s, grad_t = inverse(t), swept.t
    if solved.split.moments.shape[0] > 0:
        for i in range(row.shape[0]):
            if solved.split.u[i] > 0:
                grad_t -= out[i] * ((row[i] - solved.split.bar) * s)
    return saturate(grad_t)


@fma
def put(index, values, out):
    """Put the values of the active items in their places, saturated."""
    most = np.finfo(out.dtype).max
    for i in range(index.shape[0]):
        x = most if values[i] > most else values[i]
        out[i if index.shape[0] == out.shape[0] else index[i]] = -most if x < -most else x
