"""The threshold of the bounded relaxation: tau with sum of sigmoid(x - tau) = k, by Newton's method in a bracket.

The method is applied to the logarithm of the sum, or of what is missing from m if that is less: both are nearly
straight lines where they are small, so that about four passes over the items suffice.
"""

import math

import numpy as np

from khot.kernels import passive, pool
from khot.kernels.compiled import exact, makes_arrays, reorder, shared
from khot.kernels.elementary import exp64

_SATURATED = 100.0  # a sigmoid this far from its centre is 0 or 1 for any purpose
_MOST = 100  # passes over the items, at most; halving the bracket alone needs 64
_SHORT = 1e-7  # a step after which none is needed: the error of Newton's method is that of the last one, squared


@reorder
def _sums(x, tau):
    """Sums of the sigmoids, of what they lack of 1, and of their derivatives."""
    total, rest, slope = 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        z = x[i] - tau
        e = exp64(z if z < 0.0 else -z)
        inverse = 1.0 / (1.0 + e)
        total += e * inverse if z < 0.0 else inverse
        rest += inverse if z < 0.0 else e * inverse
        slope += e * inverse * inverse
    return total, rest, slope


@exact
def _scaled(distance, s):
    """As `khot.topk._rows` has it: finite, whatever the keys."""
    return min(max(min(max(distance, -1e150), 1e150) * s, -1e300), 1e300)


@makes_arrays
def _row(keys, present, k, t):
    """The k-th largest present key of a row, from which x = (key - origin) / t is measured, and tau."""
    values = np.empty(keys.shape[0])
    m = 0
    for i in range(keys.shape[0]):
        if present[i]:
            values[m] = keys[i]
            m += 1
    values = values[:m]
    if m == 0:
        return 0.0, 0.0
    origin = passive.nth_largest(values, min(max(k, 1), m))
    if not 0 < k < m or not t > 0.0:
        return origin, 0.0
    s = min(1.0 / t, 1e300)
    outside = -math.inf  # the largest of those that come after the k-th
    for i in range(k, m):
        outside = max(outside, values[i])
    for i in range(m):
        values[i] = _scaled(values[i] - origin, s)
    outside = _scaled(outside - origin, s)
    # k + 1 items at `outside` alone reach k at its tau - log k; with k - 1 ones, m - k + 1 items at 0 do at log(m - k)
    reach = _SATURATED + math.log(m)
    low, high = max(outside - math.log(k), outside / 2 - reach), min(math.log(m - k), outside / 2 + reach)
    tau = low / 2 + high / 2
    for _ in range(_MOST):
        total, rest, slope = _sums(values, tau)
        if total > k:
            low = tau
        else:
            high = tau
        step = math.log(total / k) * total if total < rest else math.log((m - k) / rest) * rest
        new = tau + step / slope
        if abs(new - tau) <= _SHORT + 1e-16 * abs(tau):
            return origin, min(max(new, low), high)
        tau = new if low < new < high else low / 2 + high / 2
    return origin, tau


@shared
@makes_arrays
def _rows(first, last, keys, present, k, t, origin, tau):
    for b in range(first, last):
        origin[b], tau[b] = _row(keys[b], present[b], k[b], t[b])
    return 0


def solve(keys: np.ndarray, present: np.ndarray, k: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Origin and tau (rows,) for keys (rows, n) in float64."""
    origin, tau = np.empty(len(keys)), np.empty(len(keys))
    pool.in_blocks(_rows, len(keys), 20 * keys.shape[1], keys, present, k, t, origin, tau)
    return origin, tau
