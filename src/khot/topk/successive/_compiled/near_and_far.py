"""Which items of a row are active, and what is to be known of the passive rest."""

import math
from typing import NamedTuple

import numpy as np

from khot._jit import passes
from khot._jit import workspace as scratch
from khot._jit.compiler import allocates, fma
from khot._jit.passes import largest
from khot._jit.vector_math import inverse
from khot.topk.successive._compiled import far_items as passive
from khot.topk.successive._compiled.constants import COLD
from khot.topk.successive._compiled.far_items import CHUNK

ACTIVE = 2  # active items for each of the k steps
DENSE = 8  # rows with fewer than this many items for each step have only active ones,
SMALL = 1000  # and so have rows with n (k + 1) below this
_HALVINGS = 16  # tries to find a bar by halving, before the maxima are sorted out


class Split(NamedTuple):
    """Active items, those above the bar, and what is to be known of the rest; D = 0 if there is no rest."""

    index: np.ndarray  # (active,)  # pyright: ignore[reportIncompatibleMethodOverride]
    bar: float
    u: np.ndarray  # (n,), exp((key - bar) / t), 0 at the active items
    moments: np.ndarray  # (D,), the sums of u, u^2, ...


@fma
def dense(n, k):
    """Whether all items are active from the start."""
    return n < DENSE * k or n * (k + 1) < SMALL


@fma
def careful(row, t):
    """Whether the passive items are summed in float64."""
    return row.itemsize == 8 or t < COLD


@fma
def nodes_first(row, t):
    """How many nodes are tried first."""
    return 8 if careful(row, t) else 4


@allocates
def everything(row, u, space):
    """All present items active."""
    index = scratch.numbers(space, row.shape[0] + 1).view(np.int64)
    count = 0
    for i in range(row.shape[0]):
        index[count] = i
        count += row[i] > -math.inf
    return Split(index[:count], -math.inf, u, space[:0])


@allocates
def largest_active(row, k, maxima, u, space):
    """About ACTIVE k of the largest items active; u and the moments are yet to be filled.

    The bar is put under as many groups. If much more items pass it, it is raised; if so many are equal to it that few
    pass, it is lowered and lets them in. Without enough present items all of them are active.
    """
    size = ACTIVE * k
    bar = _bar_under(maxima, size, space)
    if bar == -math.inf:
        return everything(row, u, space)
    rows = (row.shape[0] + maxima.shape[0] - 1) // maxima.shape[0]
    index = scratch.numbers(space, (size + size // 4) * rows + 1).view(np.int64)
    count = passive.above(row, bar, maxima, index)
    if 2 * count > 3 * size:
        values = scratch.numbers(space, count).view(row.dtype)[:count]
        for i in range(count):
            values[i] = row[index[i]]
        bar = passes.nth_largest(values, size + 1)
        count = passive.above(row, bar, maxima, index)
    if 2 * count < size:
        lower = np.nextafter(bar, row.dtype.type(-math.inf))
        if passes.count_above(row, lower) <= 2 * size:
            bar = lower
            index = scratch.numbers(space, 2 * size + 1).view(np.int64)
            count = passive.above(row, bar, maxima, index)
    return Split(index[:count], np.float64(bar), u, space[:0])


@fma
def halfway(maxima, size):
    """A bar that `size` to 5/4 `size` of the maxima pass, found by halving; -inf if it is not found soon."""
    low, high = passes.smallest(maxima), largest(maxima)
    for _ in range(_HALVINGS):
        middle = maxima.dtype.type(0.5) * (low + high)
        count = passes.count_above(maxima, middle)
        if size <= count <= size + size // 4:
            return middle
        if count < size:
            high = middle
        else:
            low = middle
    return maxima.dtype.type(-math.inf)


@allocates
def _bar_under(maxima, size, space):
    """The same by sorting out, if need be; fewer pass if some are equal; -inf if there are not so many."""
    if maxima.shape[0] <= size:
        return maxima.dtype.type(-math.inf)
    bar = halfway(maxima, size)
    if bar > -math.inf:
        return bar
    values = scratch.numbers(space, maxima.shape[0]).view(maxima.dtype)[: maxima.shape[0]]
    for i in range(values.shape[0]):
        values[i] = maxima[i]
    return passes.nth_largest(values, size + 1)


@allocates
def with_moments(row, t, parts, length, space):
    """The split with u and so many moments."""
    chunks = (row.shape[0] + CHUNK - 1) // CHUNK
    partial = scratch.table(space, chunks, length)
    decay(row, t, parts.bar, parts.u, 0, chunks, partial)
    return Split(parts.index, parts.bar, parts.u, total(partial, space))


@fma
def decay(row, t, bar, u, first, last, partial):
    """Fill u, and the moments of every chunk, for a range of chunks."""
    # 1e-45 is the smallest float32: times 0, an absent item's -inf would become NaN
    s = max(inverse(t), 1e-45)
    for c in range(first, last):
        start, stop, sums = c * CHUNK, min(c * CHUNK + CHUNK, row.shape[0]), partial[c]
        for d in range(sums.shape[0]):
            sums[d] = 0.0
        if row.itemsize == 4 and careful(row, t):
            passive.decay_finely(row, start, stop, bar, s, u, sums)
        else:
            passive.decay(row, start, stop, bar, s, u, sums)


@allocates
def total(partial, space):
    """Sum over chunks, in their order."""
    result = scratch.zeros(space, partial.shape[1])
    for c in range(partial.shape[0]):
        for d in range(result.shape[0]):
            result[d] += partial[c, d]
    return result
