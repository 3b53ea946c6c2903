"""The choice of the near items of a row, and the sums over the far items for the recursion."""

import math

import numpy as np

from khot._jit import passes
from khot._jit.compiler import fma
from khot._jit.passes import largest
from khot._jit.vector_math import inverse
from khot.topk.successive._compiled import far_items, state
from khot.topk.successive._compiled.constants import BAD, COLD, COLDEST, EMPTY, OPEN, SHORT, TRUNCATED, WIDEST
from khot.topk.successive._compiled.far_items import CHUNK
from khot.topk.successive._compiled.state import MOST_NODES

NEAR_PER_STEP = 2  # near items for each of the k steps
DENSE = 8  # rows with fewer than this many items for each step have only near ones,
SMALL = 1000  # and so have rows with n (k + 1) below this
PROMISE, PROMISE_NARROW = 5e-13, 1e-11  # largest error of a float64 result, and of one that is rounded
_HALVINGS = 16  # most halvings in search of a threshold, before the maxima are ranked


@fma
def careful(itemsize, t):
    """Whether the far items are summed in float64."""
    return itemsize == 8 or t < COLD


@fma
def fewest_nodes(itemsize, t):
    """Number of nodes that are tried first."""
    return MOST_NODES if careful(itemsize, t) else MOST_NODES // 2


@fma
def tolerance(itemsize, t, length):
    """Largest entry at a node, over t, for which nodes represent the far items to 1e-7 or 1e-15."""
    if length == 0:
        return math.inf
    return 0.7 if length == MOST_NODES and not careful(itemsize, t) else 0.15


@fma
def promise(itemsize, t, spread):
    """Error up to which a result and its gradient are accepted; 0 if errors cannot grow."""
    if t < COLDEST:
        return 0.0
    doubtful = spread <= WIDEST if t < COLD else 1e3 * t < spread < 1e12
    return (PROMISE if careful(itemsize, t) else PROMISE_NARROW) if doubtful else 0.0


@fma
def choose(row, k, t, length, maxima, low, layout, own, index, values):
    """Fill in the near items of a row and their threshold; returns OPEN, or the path of a row that needs no recursion.

    With `length` nodes these are the largest items, without nodes all present ones. `own` is the state of the row,
    `maxima` are those of its groups, inf if an item is NaN, and `low` is its smallest present item. `index`
    (.,) and `values` (.,), the latter in the dtype of the row, are workspaces. TRUNCATED means that no threshold leaves
    a suitable number of near items.
    """
    top = largest(maxima)
    if not 0.0 < t < math.inf or k < 0 or top == math.inf:
        return BAD
    if k == 0:
        return EMPTY
    threshold = -math.inf
    if length == 0:
        count = far_items.present(row, index)
        if count < k:
            return SHORT
    else:
        threshold, count = _largest_items(row, k, maxima, index, values)
        if not threshold > -math.inf or count < k or count + length > layout.room:
            return TRUNCATED
    own[state.NEAR], own[state.LENGTH], own[state.THRESHOLD] = count, length, threshold
    own[state.LARGEST_KEY], own[state.SMALLEST_KEY] = top, low
    kept, keys = state.index(own, layout), state.keys(own, layout)
    for i in range(count):
        kept[i], keys[i] = index[i], row[index[i]]
    return OPEN


@fma
def _largest_items(row, k, maxima, index, values):
    """A threshold, and the number of items above it, about NEAR_PER_STEP k, whose indices are filled in.

    At first, the maxima of about NEAR_PER_STEP k groups exceed the threshold. If many more items exceed it, it is
    raised; if few do, because many are equal to it, it is lowered to include these. It is -inf if too few items are
    present.
    """
    size = NEAR_PER_STEP * k
    threshold = _threshold_under(maxima, size, values)
    if threshold == -math.inf:
        return -math.inf, 0
    count = far_items.above(row, threshold, maxima, index)
    if 2 * count > 3 * size:
        for i in range(count):
            values[i] = row[index[i]]
        threshold = passes.nth_largest(values[:count], size + 1)
        count = far_items.above(row, threshold, maxima, index)
    if 2 * count < size:
        lower = np.nextafter(threshold, row.dtype.type(-math.inf))
        if passes.count_above(row, lower) <= 2 * size:
            threshold = lower
            count = far_items.above(row, threshold, maxima, index)
    return np.float64(threshold), count


@fma
def halfway(maxima, size):
    """A threshold that `size` to 5/4 `size` of the maxima exceed, found by halving; -inf if it is not found soon."""
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


@fma
def _threshold_under(maxima, size, values):
    """The threshold of `halfway`, or else the maximum of rank `size` + 1; -inf if there are too few maxima."""
    if maxima.shape[0] <= size:
        return maxima.dtype.type(-math.inf)
    threshold = halfway(maxima, size)
    if threshold > -math.inf:
        return threshold
    for i in range(maxima.shape[0]):
        values[i] = maxima[i]
    return passes.nth_largest(values[: maxima.shape[0]], size + 1)


def index_room(n: int, k: int) -> int:
    """Length of the index for `choose` with nodes: room for all items of 5/4 NEAR_PER_STEP k groups."""
    size = NEAR_PER_STEP * k
    groups = far_items.groups.py_func(n, size)
    return max((size + size // 4) * -(-n // groups), 2 * size, groups) + 1


@fma
def decay(row, t, threshold, c, u, sums):
    """Fill u and the moments of a chunk."""
    # at least the smallest float32, 1e-45: with s = 0, an absent item's -inf would become NaN
    s = max(inverse(t), 1e-45)
    start, stop = c * CHUNK, min(c * CHUNK + CHUNK, row.shape[0])
    for d in range(sums.shape[0]):
        sums[d] = 0.0
    if row.itemsize == 4 and careful(row.itemsize, t):
        far_items.decay_finely(row, start, stop, threshold, s, u, sums)
    else:
        far_items.decay(row, start, stop, threshold, s, u, sums)
