"""Precision of each row at which its neighbours have a given perplexity, by Newton's method in a bracket.

The method finds the entropy as a function of the logarithm of the precision. The search of a row starts from the result
of the row before it.
"""

import math

import numpy as np

from khot._jit.compiler import allocates, kernel, reorder
from khot._jit.threads import in_blocks
from khot._jit.vector_math import decay32
from khot.embed._perplexity import (
    ENTROPY_FLAT,
    ENTROPY_TOLERANCE,
    LARGEST_PRECISION,
    LONGEST_PRECISION_STEP,
    PRECISION_STEPS,
)

_ROWS = 64  # in a block; fixed, so that the result does not depend on the number of threads
_FAR = 1e30  # instead of infinity, whose product with a weight of 0 is NaN


@reorder
def _sums(apart, precision):
    """Sums of the weights, of weights times distances, and of weights times squared distances."""
    s = np.float32(precision)
    total, mean, square = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for j in range(apart.shape[0]):
        weight = decay32(apart[j], s)
        total += weight
        weight *= apart[j]
        mean += weight
        square += weight * apart[j]
    return np.float64(total), np.float64(mean), np.float64(square)


@reorder
def _ties(apart):
    """Number of neighbours at the smallest distance."""
    count = 0
    for j in range(apart.shape[0]):
        count += apart[j] == 0
    return count


@allocates
def _scale(row, apart):
    """Write distances minus the smallest, in units of their mean, into `apart`. Returns the smallest and the unit."""
    least, unit, share = math.inf, 0.0, 1.0 / row.shape[0]
    for j in range(row.shape[0]):
        least = min(least, row[j])
    for j in range(row.shape[0]):
        unit += (row[j] - least) * share if row[j] < math.inf else 0.0
    unit = unit if unit > 0.0 else 1.0
    for j in range(row.shape[0]):
        apart[j] = min((row[j] - least) / unit, _FAR)
    return least, unit


@allocates
def _search(apart, at, perplexity):
    """Logarithm of the precision, by a search that starts from `at`."""
    if _ties(apart) >= perplexity:  # no precision is large enough
        return LARGEST_PRECISION
    low, high, aim = -LARGEST_PRECISION, LARGEST_PRECISION, math.log(perplexity)
    at = min(at, LARGEST_PRECISION / 2)
    for _ in range(PRECISION_STEPS):
        precision = math.exp(at)
        total, mean, square = _sums(apart, precision)
        mean *= precision / total
        slope = square * precision * precision / total - mean * mean
        excess = math.log(total) + mean - aim  # of the entropy, which falls with the precision
        if abs(excess) <= ENTROPY_TOLERANCE:
            break
        if excess > 0.0:
            low = at
        else:
            high = at
        step = at + min(max(excess / max(slope, ENTROPY_FLAT), -LONGEST_PRECISION_STEP), LONGEST_PRECISION_STEP)
        at = step if low < step < high else (low + high) / 2
    return at


@kernel
@allocates
def _blocks(first, last, distances, perplexity):
    apart = np.empty(distances.shape[1], np.float32)
    for block in range(first, last):
        at = 0.0
        for i in range(block * _ROWS, min(block * _ROWS + _ROWS, distances.shape[0])):
            row = distances[i]
            least, unit = _scale(row, apart)
            at = _search(apart, at, perplexity)
            precision = math.exp(at)
            for j in range(row.shape[0]):
                row[j] = (least - row[j]) / unit * precision
    return 0


def calibrate(distances: np.ndarray, perplexity: float) -> None:
    """Turn distances (n, m), inf for a row itself, into log-weights with that perplexity, in place."""
    blocks = -(-len(distances) // _ROWS)
    in_blocks(_blocks, blocks, 10 * _ROWS * distances.shape[1], distances, perplexity)
