"""The bounded relaxation, sigmoid(x - tau) with the threshold tau at which a row sums to k, and its gradient.

The threshold is found by Newton's method in a bracket. It is applied to the logarithm of the sum, or of what is missing
from m if that is less: both are nearly straight lines where they are small, so that about four passes over the items
suffice.
"""

import math

import numpy as np

from khot._jit import passes
from khot._jit.compiler import allocates, fma, kernel, loop, reorder
from khot._jit.passes import largest
from khot._jit.threads import in_blocks
from khot._jit.vector_math import exp64, inverse

_SATURATED = 100.0  # a sigmoid this far from its centre is 0 or 1 for any purpose
_MOST = 100  # passes over the items, at most; halving the bracket alone needs 64
_TINY = np.finfo(np.float64).tiny
_SHORT = 1e-7  # a step after which none is needed: the error of Newton's method is that of the last one, squared


@reorder
def _sums(x, tau):
    """Sums of the sigmoids, of 1 minus each sigmoid, and of their derivatives."""
    total, rest, slope = 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        z = x[i] - tau
        e = exp64(z if z < 0.0 else -z)
        inverse = 1.0 / (1.0 + e)
        total += e * inverse if z < 0.0 else inverse
        rest += inverse if z < 0.0 else e * inverse
        slope += e * inverse * inverse
    return total, rest, slope


@fma
def _scaled(distance, s):
    """Scaled keys as in `khot.topk._rows`, finite for all keys."""
    return min(max(min(max(distance, -1e150), 1e150) * s, -1e300), 1e300)


@allocates
def _solve(row, k, t, values):
    """The k-th largest present key of a row, from which x = (key - origin) / t is measured, tau, and if all are sound.

    Where all present items are chosen, or none, tau is infinite. `values` (n,) is a workspace.
    """
    m, sound = 0, True
    for i in range(row.shape[0]):
        values[m] = row[i]
        m += row[i] != -math.inf
        sound &= row[i] < math.inf
    values = values[:m]
    if not sound or not t > 0.0:
        return 0.0, math.nan, sound
    if not 0 < k < m:
        return 0.0, -math.inf if k > 0 else math.inf, sound
    origin = passes.nth_largest(values, k)
    s = inverse(t)
    outside = largest(values[k:])
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
            return origin, min(max(new, low), high), sound
        tau = new if low < new < high else low / 2 + high / 2
    return origin, tau, sound


@loop
def _sigmoids(row, origin, s, tau, out):
    for i in range(row.shape[0]):
        z = _scaled(row[i] - origin, s) - tau
        e = exp64(-abs(z))
        x = (e if z < 0.0 else 1.0) / (1.0 + e)
        out[i] = x if row[i] > -math.inf else 0.0


@reorder
def _slopes(row, origin, s, tau, g, slopes):
    """Fill in the derivatives of the sigmoids; returns their sum, and the sum of their products with g."""
    total, product = 0.0, 0.0
    for i in range(row.shape[0]):
        e = exp64(-abs(_scaled(row[i] - origin, s) - tau))
        x = e / ((1.0 + e) * (1.0 + e))
        x = x if row[i] > -math.inf else 0.0
        slopes[i] = x
        total += x
        product += x * g[i]
    return total, product


@loop
def _pull_back(slopes, g, mean, s, out):
    most = np.finfo(out.dtype).max
    for i in range(out.shape[0]):
        x = slopes[i] * (g[i] - mean) * s
        x = most if x > most else x
        out[i] = -most if x < -most else x


@kernel
@allocates
def _forward(first, last, keys, k, t, origin, tau, out):
    """Returns whether all keys are sound."""
    values, sound = np.empty(keys.shape[1]), True
    for b in range(first, last):
        origin[b], tau[b], fine = _solve(keys[b], k[b], t[b], values)
        _sigmoids(keys[b], origin[b], inverse(t[b]), tau[b], out[b])
        sound &= fine
    return sound


@kernel
@allocates
def _backward(first, last, keys, t, origin, tau, g, out):
    slopes = np.empty(keys.shape[1])
    for b in range(first, last):
        s = inverse(t[b])
        total, product = _slopes(keys[b], origin[b], s, tau[b], g[b], slopes)
        if total < _TINY:
            out[b] = 0.0
        else:
            _pull_back(slopes, g[b], product / total, s, out[b])
    return 0


def forward(keys: np.ndarray, k: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """The relaxation (rows, n), origin and tau (rows,), and whether the keys are sound.

    Keys (rows, n), of which -inf are absent, and result are float32 or float64. NaN and +inf are not sound.
    """
    origin, tau, out = np.empty(len(keys)), np.empty(len(keys)), np.empty_like(keys)
    sound = in_blocks(_forward, len(keys), 25 * keys.shape[1], keys, k, t, origin, tau, out)
    return out, origin, tau, bool(sound)


def backward(keys: np.ndarray, t: np.ndarray, origin: np.ndarray, tau: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The gradient in the keys for a cotangent g (rows, n), saturated; 0 where all slopes underflow."""
    out = np.empty_like(keys)
    in_blocks(_backward, len(keys), 10 * keys.shape[1], keys, t, origin, tau, g, out)
    return out
