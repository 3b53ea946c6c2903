"""Which items of a row are active, and what is to be known of the passive rest."""

import math
from typing import NamedTuple

import numpy as np

from khot.kernels import passive, recursion, scratch
from khot.kernels.compiled import exact, makes_arrays
from khot.kernels.constants import COLD
from khot.kernels.elementary import largest
from khot.kernels.passive import CHUNK

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


@exact
def dense(n, k):
    """Whether all items are active from the start."""
    return n < DENSE * k or n * (k + 1) < SMALL


@exact
def careful(row, t):
    """Whether the passive items are summed in float64."""
    return row.itemsize == 8 or t < COLD


@exact
def nodes_first(row, t):
    """How many nodes are tried first."""
    return 8 if careful(row, t) else 4


@makes_arrays
def everything(row, u, space):
    """All present items active."""
    index = scratch.numbers(space, row.shape[0] + 1).view(np.int64)
    count = 0
    for i in range(row.shape[0]):
        index[count] = i
        count += row[i] > -math.inf
    return Split(index[:count], -math.inf, u, space[:0])


@makes_arrays
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
        bar = passive.nth_largest(values, size + 1)
        count = passive.above(row, bar, maxima, index)
    if 2 * count < size:
        lower = np.nextafter(bar, row.dtype.type(-math.inf))
        if passive.count_above(row, lower) <= 2 * size:
            bar = lower
            index = scratch.numbers(space, 2 * size + 1).view(np.int64)
            count = passive.above(row, bar, maxima, index)
    return Split(index[:count], np.float64(bar), u, space[:0])


@exact
def halfway(maxima, size):
    """A bar that `size` to 5/4 `size` of the maxima pass, found by halving; -inf if it is not found soon."""
    low, high = passive.smallest(maxima), largest(maxima)
    for _ in range(_HALVINGS):
        middle = maxima.dtype.type(0.5) * (low + high)
        count = passive.count_above(maxima, middle)
        if size <= count <= size + size // 4:
            return middle
        if count < size:
            high = middle
        else:
            low = middle
    return maxima.dtype.type(-math.inf)


@makes_arrays
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
    return passive.nth_largest(values, size + 1)


@makes_arrays
def with_moments(row, t, parts, length, space):
    """The split with u and so many moments."""
    chunks = (row.shape[0] + CHUNK - 1) // CHUNK
    partial = scratch.table(space, chunks, length)
    decay(row, t, parts.bar, parts.u, 0, chunks, partial)
    return Split(parts.index, parts.bar, parts.u, total(partial, space))


@exact
def decay(row, t, bar, u, first, last, partial):
    """Fill u, and the moments of every chunk, for a range of chunks."""
    # 1e-45 is the smallest float32: times 0, an absent item's -inf would become NaN
    s = max(recursion.sharpness(t), 1e-45)
    for c in range(first, last):
        start, stop, sums = c * CHUNK, min(c * CHUNK + CHUNK, row.shape[0]), partial[c]
        for d in range(sums.shape[0]):
            sums[d] = 0.0
        if row.itemsize == 4 and careful(row, t):
            passive.decay_finely(row, start, stop, bar, s, u, sums)
        else:
            passive.decay(row, start, stop, bar, s, u, sums)


@makes_arrays
def total(partial, space):
    """Sum over chunks, in their order."""
    result = scratch.zeros(space, partial.shape[1])
    for c in range(partial.shape[0]):
        for d in range(result.shape[0]):
            result[d] += partial[c, d]
    return result
