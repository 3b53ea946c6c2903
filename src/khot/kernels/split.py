"""Which items of a row are active, and what is to be known of the passive rest."""

import math
from typing import NamedTuple

import numpy as np

from khot.kernels import passive, recursion
from khot.kernels.compiled import exact
from khot.kernels.elementary import largest
from khot.kernels.passive import CHUNK

ACTIVE = 2  # active items for each of the k steps
DENSE = 8  # rows with fewer than this many items for each step have only active ones


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


@exact
def survey(row, k):
    """A first look, and the maxima of groups of items."""
    width = passive.width(row.shape[0], ACTIVE * k)
    maxima = np.empty((row.shape[0] + width - 1) // width, row.dtype)
    nan, absent = passive.scan(row, 0, row.shape[0], width, maxima)
    return Survey(row.shape[0] - absent, nan, largest(maxima)), maxima


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
def largest_active(row, k, t, seen, maxima):
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
    # 1e-45 is the smallest float32: times 0, an absent item's -inf would become NaN
    threshold, s = row.dtype.type(parts.threshold), row.dtype.type(max(recursion.sharpness(t), 1e-45))
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
