"""Every row that the fast paths leave, and all results other than k-hot vectors, in stages.

A stage is one kernel over rows, or over chunks of rows where it passes over all n items, so that one very long row
occupies all threads. Those that pass over items exist for both dtypes, the recursion for float64 alone.

    look              maxima of the groups of items        each chunk
    choose            near items, threshold                each row
    decay             u and moments of the far items       each chunk
    recur             the recursion                        each row
    with_32_digits    the recursion with 32 digits         each row
    write             results                              each chunk

`full_backward` has the stages of the gradient.

Results and cotangents of a row are tables: (1, n) for the k-hot vector, (k, n) for the k vectors apart, and (1, k) for
single entries, the j-th vector's at the item `at[j]` (none if that is -1).
"""

import math

import numpy as np

from khot._jit import passes
from khot._jit.compiler import allocates, fma, kernel, rare_kernel
from khot._jit.vector_math import inverse
from khot.topk.successive._compiled import far_items, interpolation, near_and_far, precise, recursion, state
from khot.topk.successive._compiled.constants import ALL, COLD, ENTRIES, INEXACT, NODES, OPEN, PRECISE, SUM, VECTORS
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.recursion import FINE
from khot.topk.successive._compiled.state import MOST_NODES


@fma
def chunk(c, n):
    """Where a chunk begins and ends."""
    return c * CHUNK, min((c + 1) * CHUNK, n)


@kernel
@allocates
def look(first, last, rows, keys, k, length, maxima, lows):
    """Fill in the maxima (rows, chunks, groups) of the groups of items, inf if one is NaN, and the smallest items.

    Here a chunk has `length` items, a multiple of the number of groups.
    """
    for unit in range(first, last):
        slot, c = unit // lows.shape[1], unit % lows.shape[1]
        row, found = keys[rows[slot]], maxima[slot, c, : _groups(keys.shape[1], k[rows[slot]])]
        start, stop = c * length, min((c + 1) * length, row.shape[0])
        if not far_items.maxima_of(row, start, stop, found):
            found[0] = math.inf
        lows[slot, c] = passes.smallest(row[start:stop])
    return 0


@fma
def _groups(n, k):
    return far_items.groups(n, near_and_far.NEAR_PER_STEP * max(k, 1))


@kernel
@allocates
def choose(first, last, rows, keys, k, t, length, maxima, lows, index_room, states, places, layout, paths):
    """Choose the near items of rows; their paths are OPEN, or the reason why there is nothing to do."""
    index, values = np.empty(index_room, np.int64), np.empty(index_room, keys.dtype)
    top = np.empty(maxima.shape[2], keys.dtype)
    for slot in range(first, last):
        b, low, own = rows[slot], math.inf, states[places[slot]]
        groups = _groups(keys.shape[1], k[b])
        for i in range(groups):
            top[i] = -math.inf
        for c in range(maxima.shape[1]):
            low = min(low, lows[slot, c])
            for i in range(groups):
                top[i] = max(top[i], maxima[slot, c, i])
        row, found = keys[b], top[:groups]
        paths[slot] = near_and_far.choose(row, k[b], t[b], length, found, low, layout, own, index, values)
    return 0


@kernel
@allocates
def decay(first, last, rows, keys, t, states, places, layout, paths, partial):
    """Fill in u of open rows, and the moments (rows, chunks, length) of each chunk."""
    for unit in range(first, last):
        slot, c = unit // partial.shape[1], unit % partial.shape[1]
        if paths[slot] == OPEN:
            row, own = keys[rows[slot]], states[places[slot]]
            _decay(row, t[rows[slot]], own, layout, c, partial[slot, c])
    return 0


@fma
def _decay(row, t, own, layout, c, sums):
    near_and_far.decay(row, t, own[state.THRESHOLD], c, state.u(own, layout, row), sums)


@kernel
@allocates
def recur(first, last, rows, k, t, itemsize, exact, states, places, layout, paths, partial, results):
    """Run the recursion of open rows in float64; their paths become NODES or ALL, TRUNCATED or INEXACT.

    If `exact`, for rows that are INEXACT, only errors that more digits would not help against count: those that stay
    INEXACT can be computed with 32 digits if their path becomes OPEN.
    """
    spare = np.empty((5, layout.room))
    for slot in range(first, last):
        if paths[slot] == (INEXACT if exact else OPEN):
            b, own = rows[slot], states[places[slot]]
            if not exact:
                _count(partial[slot], own, layout, results[slot])
            paths[slot] = _recur(k[b], t[b], itemsize, exact, own, layout, results[slot], spare)
    return 0


@fma
def _count(partial, own, layout, moments):
    """Fill in how many items each node stands for, from the moments of the chunks."""
    length = partial.shape[1]
    for d in range(length):
        moments[d] = 0.0
        for c in range(partial.shape[0]):
            moments[d] += partial[c, d]
    if length > 0:
        interpolation.at_nodes(moments[:length], state.many(own, layout))


@fma
def _begin(t, own, layout, result, spare):
    """Fill rows 0 and 1 of `spare` with the keys and what is added to them at the start; zero the result.

    A node starts t log u below the threshold: added to a large threshold, that would lose its digits.
    """
    (near, length), keys = state.sizes(own), state.keys(own, layout)
    for i in range(near):
        spare[0, i], spare[1, i], result[i] = keys[i], 0.0, 0.0
    for q in range(length):
        spare[0, near + q], spare[1, near + q] = own[state.THRESHOLD], t * interpolation.logarithm(length, q)
        result[near + q] = 0.0
    return near, near + length


@fma
def _recur(k, t, itemsize, exact, own, layout, result, spare):
    """Run the recursion of a row: by multiplication where errors do not grow, else item by item."""
    near, size = _begin(t, own, layout, result, spare)
    many, weights, record = state.many(own, layout), state.weights(own, layout), state.record(own, layout)
    gaps = state.gaps(own, layout)
    most = near_and_far.tolerance(itemsize, t, size - near)
    status = INEXACT
    if t >= COLD and gaps.shape[0] == 0 and not exact:
        top = own[state.LARGEST_KEY]
        recursion.weigh(spare[0], near, size - near, own[state.THRESHOLD], top, inverse(t), weights)
        status = recursion.multiply(weights, record, many, near, k, inverse(t), most, result)
        if status == INEXACT:
            _begin(t, own, layout, result, spare)
    if status == INEXACT:
        promise = near_and_far.promise(itemsize, t, own[state.LARGEST_KEY] - own[state.SMALLEST_KEY])
        rough = 1e-14 if near_and_far.careful(itemsize, t) else 1e-6
        unit = 0.0 if exact else recursion.UNIT
        keys, start, after = spare[0, :size], spare[1, :size], result[:size]
        status = recursion.forward(
            keys, start, near, many, k, t, unit, rough, most, promise, weights, record, gaps, after, spare[2:]
        )
    if status == FINE:
        return OPEN if exact else (NODES if size > near else ALL)
    return status


@rare_kernel
@allocates
def with_32_digits(first, last, rows, k, t, states, places, layout, paths, results):
    """Run the recursion of open rows in pairs of float64 numbers."""
    spare = np.empty((2, layout.room))
    for slot in range(first, last):
        if paths[slot] == OPEN:
            b, own = rows[slot], states[places[slot]]
            _precisely(k[b], t[b], own, layout, results[slot], spare)
            paths[slot] = PRECISE
    return 0


@fma
def _precisely(k, t, own, layout, result, spare):
    near, size = _begin(t, own, layout, result, spare)
    keys, start, weights = spare[0, :size], spare[1, :size], state.weights(own, layout)
    many, record, gaps = state.many(own, layout), state.record(own, layout), state.gaps(own, layout)
    precise.forward(keys, start, near, many, k, t, weights, record, gaps, result[:size])


@kernel
@allocates
def write(first, last, rows, keys, k, at, mode, chunks, states, places, layout, results, out):
    """Fill in the results of rows."""
    table = np.empty((layout.steps + 1, MOST_NODES))
    for unit in range(first, last):
        slot, c = unit // chunks, unit % chunks
        b, own = rows[slot], states[places[slot]]
        if mode == ENTRIES:
            _write_entries(keys[b], k[b], at[b], own, layout, table, out[b, 0])
        else:
            _write(keys[b], k[b], mode, c, own, layout, results[slot], table, out[b])
    return 0


@fma
def coefficients(k, mode, own, layout, table):
    """Fill in the coefficients of the far entries u C(u), one row for each row of the result; the last row is spare."""
    near, length = state.sizes(own)
    weights, record = state.weights(own, layout), state.record(own, layout)
    values = table[table.shape[0] - 1, :length]
    for r in range(1 if mode == SUM else k):
        for q in range(length):
            values[q] = 0.0
            for j in range(k if mode == SUM else 1):
                values[q] += recursion.p_of(weights, record, r + j, near + q)
        interpolation.coefficients(values, table[r, :length])


@fma
def _write(row, k, mode, c, own, layout, result, table, out):
    """Fill a chunk of the k-hot vector, or of the k vectors, of a row."""
    near, length = state.sizes(own)
    start, stop = chunk(c, row.shape[0])
    index, weights, record = state.index(own, layout), state.weights(own, layout), state.record(own, layout)
    if mode == SUM and length > 0:
        interpolation.coefficients(result[near : near + length], table[0, :length])
    elif mode == VECTORS:
        coefficients(k, mode, own, layout, table)
    for r in range(out.shape[0]):
        if length > 0 and (mode == SUM or r < k):
            far_items.evaluate(state.u(own, layout, row), start, stop, table[r, :length], out[r])
        else:
            for i in range(start, stop):
                out[r, i] = 0.0
    for i in range(near):
        if start <= index[i] < stop:
            if mode == SUM:
                out[0, index[i]] = result[i]
            else:
                for j in range(k):
                    out[j, index[i]] = recursion.p_of(weights, record, j, i)


@fma
def place(index, near, item):
    """Where an item stands among the near ones, or -1."""
    for i in range(near):
        if index[i] == item:
            return i
    return -1


@fma
def power_sum(table, u):
    """table[0] u + table[1] u^2 + ..."""
    total, power = 0.0, u
    for d in range(table.shape[0]):
        total += table[d] * power
        power *= u
    return total


@fma
def _write_entries(row, k, at, own, layout, table, out):
    near, length = state.sizes(own)
    index, weights, record = state.index(own, layout), state.weights(own, layout), state.record(own, layout)
    u = state.u(own, layout, row)
    coefficients(k, ENTRIES, own, layout, table)
    for j in range(out.shape[0]):
        out[j] = 0.0
        i = place(index, near, at[j]) if j < k else -1
        if i >= 0:
            out[j] = recursion.p_of(weights, record, j, i)
        elif j < k and at[j] >= 0 and length > 0:
            out[j] = power_sum(table[j, :length], np.float64(u[at[j]]))
