"""The successive softmax of one row: its results and its way back.

Results and cotangents of a row are tables: (1, n) for the k-hot vector, (k, n) for the k vectors apart, and (1, k) for
single entries, the j-th vector's at the item `at[j]` (none if that is -1).
"""

import math
from typing import NamedTuple

import numpy as np

from khot.kernels import interpolation, passive, recursion
from khot.kernels.compiled import exact
from khot.kernels.passive import CHUNK
from khot.kernels.recursion import saturate
from khot.kernels.solution import BAD, load, p_of, solve, trivial
from khot.kernels.split import decay, largest_active, survey

SUM, VECTORS, ENTRIES = 0, 1, 2  # what is asked for


class Swept(NamedTuple):
    """Cotangents of the keys (M,), of how many items a node stands for (M,), of t."""

    keys: np.ndarray
    many: np.ndarray
    t: float


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
        interpolation.coefficients(values[j], table[j])
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
    solved = solve(row, k, t, seen, largest_active(row, k, t, seen, maxima), keep, False, state)
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
    interpolation.coefficients(solved.result[solved.split.index.shape[0] :], result)
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
        solved = solve(row, k, t, seen, largest_active(row, k, t, seen, maxima), True, want_t, state[:0])
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
        interpolation.at_nodes(moments, grad_p[r, active:])
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
    interpolation.coefficients(swept.many[active:], rest[0])
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
