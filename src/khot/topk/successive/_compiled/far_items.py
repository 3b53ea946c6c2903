"""Passes over all n items of a row, vectorised, in the dtype of the row.

Sums are taken block by block and chunk by chunk, in an order that n alone decides, so that a row has one result whether
its chunks go through one thread or many.
"""

import math

import numpy as np

from khot._jit.compiler import allocates, fma, no_nan, reorder
from khot._jit.passes import largest
from khot._jit.vector_math import decayed, larger, size_bits

BLOCK = 1024  # items whose powers stay in the first-level cache
CHUNK = 32 * BLOCK  # items that one thread takes at a time in a very long row
_NEGLIGIBLE = -40.0  # logarithm of what is lost in a sum of float64


@fma
def groups(n, size):
    """Number of groups into which to cut n items when the `size` largest are sought: a power of two, or n.

    Many groups make the selection of the largest maxima long, few the search for the items behind them.
    """
    wanted = max(4.0 * size, math.sqrt(n * size))
    result = 8
    while result < wanted:
        result *= 2
    return min(result, n)


@no_nan
def maxima_of(row, start, stop, maxima):
    """Maximum of every group: item i belongs to the group i modulo their number, of which `start` is a multiple.

    Returns whether no item is NaN; if one is, the maxima are any numbers.
    """
    infinite = worst = size_bits(row.dtype.type(math.inf))
    for i in range(maxima.shape[0]):
        maxima[i] = -math.inf
    for first in range(start, stop, maxima.shape[0]):
        part = row[first : min(first + maxima.shape[0], stop)]
        for i in range(part.shape[0]):
            maxima[i] = larger(part[i], maxima[i])
            worst = max(worst, size_bits(part[i]))
    return worst == infinite


@fma
def above(row, threshold, maxima, index):
    """Fill in the indices of the items above the threshold, found by the `maxima` of groups, and return their number.

    The index has room for one more, which is written and not kept; if there are as many or more, it returns that room.
    No branch depends on the keys, since the processor would guess it wrong. The groups to look into wait at the end of
    the index; each holds an item at least, so that items run into them only if there is not room for all.
    """
    size, room, groups = maxima.shape[0], index.shape[0], 0
    threshold = row.dtype.type(threshold)
    for group in range(size):
        index[groups] = group
        groups += maxima[group] > threshold
        if groups == room:
            return room
    for h in range(groups - 1, -1, -1):
        index[room - groups + h] = index[h]
    count = 0
    for waiting in range(room - groups + 1, room + 1):
        i = index[waiting - 1]
        while i < row.shape[0]:  # a range of steps would begin with a division
            index[count] = i
            count += row[i] > threshold
            if count == waiting:
                return room
            i += size
    return count


@fma
def present(row, index):
    """Fill in the indices of the present items, one more is written and not kept; returns their number."""
    count = 0
    for i in range(row.shape[0]):
        index[count] = i
        count += row[i] > -math.inf
    return count


@reorder
def decay(row, start, stop, threshold, s, u, moments):
    """u = exp((row - threshold) s), 0 above the threshold; adds the sums of its powers 1, 2, ... to moments."""
    threshold, s = row.dtype.type(threshold), row.dtype.type(s)
    for first in range(start, stop, BLOCK):
        keys, here = row[first : min(first + BLOCK, stop)], u[first : min(first + BLOCK, stop)]
        part = keys.shape[0] // 32 * 8
        for i in range(part):  # four at a time, for which the constants of the exponential are loaded once
            here[i], here[part + i] = decayed(threshold - keys[i], s), decayed(threshold - keys[part + i], s)
            j = 2 * part + i
            here[j], here[part + j] = decayed(threshold - keys[j], s), decayed(threshold - keys[part + j], s)
        for i in range(4 * part, keys.shape[0]):
            here[i] = decayed(threshold - keys[i], s)
        _add_moments(here, moments)


@allocates
def decay_finely(row, start, stop, threshold, s, u, moments):
    """`decay` of a float32 row in float64, but for blocks that hardly count."""
    wide = np.empty(BLOCK)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        if (largest(row[first:last]) - threshold) * s < _NEGLIGIBLE:
            decay(row, first, last, threshold, s, u, moments)
        else:
            _widely(row[first:last], threshold, s, wide, u[first:last])
            _add_moments(wide[: last - first], moments)


@reorder
def _widely(keys, threshold, s, wide, u):
    for i in range(keys.shape[0]):
        wide[i] = decayed(threshold - np.float64(keys[i]), s)
    for i in range(keys.shape[0]):
        u[i] = wide[i]


@reorder
def _add_moments(u, moments):
    """Adds the sums of u, u^2, ... to moments, four at a time."""
    sum0 = sum1 = sum2 = sum3 = u.dtype.type(0)
    for i in range(u.shape[0]):
        square = u[i] * u[i]
        sum0 += u[i]
        sum1 += square
        sum2 += u[i] * square
        sum3 += square * square
    _add_four(moments, 0, sum0, sum1, sum2, sum3)
    if moments.shape[0] > 4:
        sum0 = sum1 = sum2 = sum3 = u.dtype.type(0)
        for i in range(u.shape[0]):
            square = u[i] * u[i]
            fourth = square * square
            sum0 += u[i] * fourth
            sum1 += square * fourth
            sum2 += u[i] * (square * fourth)
            sum3 += fourth * fourth
        _add_four(moments, 4, sum0, sum1, sum2, sum3)


@reorder
def project(g, u, start, stop, moments):
    """Adds the sums of g u, g u^2, ... to moments."""
    for first in range(start, stop, BLOCK):
        given, here = g[first : min(first + BLOCK, stop)], u[first : min(first + BLOCK, stop)]
        sum0 = sum1 = sum2 = sum3 = u.dtype.type(0)
        for i in range(here.shape[0]):
            x, square = given[i] * here[i], here[i] * here[i]
            cube = x * square
            sum0 += x
            sum1 += x * here[i]
            sum2 += cube
            sum3 += cube * here[i]
        _add_four(moments, 0, sum0, sum1, sum2, sum3)
        if moments.shape[0] > 4:
            sum0 = sum1 = sum2 = sum3 = u.dtype.type(0)
            for i in range(here.shape[0]):
                square = here[i] * here[i]
                x = (given[i] * here[i]) * (square * square)
                cube = x * square
                sum0 += x
                sum1 += x * here[i]
                sum2 += cube
                sum3 += cube * here[i]
            _add_four(moments, 4, sum0, sum1, sum2, sum3)


@fma
def _add_four(moments, d, sum0, sum1, sum2, sum3):
    moments[d] += _saturated(sum0)
    moments[d + 1] += _saturated(sum1)
    moments[d + 2] += _saturated(sum2)
    moments[d + 3] += _saturated(sum3)


@fma
def _saturated(x):
    """A sum of cotangents may overflow in float32; infinities of both signs would become NaN."""
    x = 1e200 if x > 1e200 else x
    return -1e200 if x < -1e200 else x


@fma
def _cubic(x, c0, c1, c2, c3):
    return ((c3 * x + c2) * x + c1) * x + c0


@fma
def _coefficient(coefficients, d, like):
    """In the dtype of an array, and 0 beyond the last."""
    return like.dtype.type(coefficients[d] if d < coefficients.shape[0] else 0.0)


@reorder
def evaluate(u, start, stop, coefficients, out):
    """out = u times the polynomial in u."""
    c0, c1 = _coefficient(coefficients, 0, u), _coefficient(coefficients, 1, u)
    c2, c3 = _coefficient(coefficients, 2, u), _coefficient(coefficients, 3, u)
    c4, c5 = _coefficient(coefficients, 4, u), _coefficient(coefficients, 5, u)
    c6, c7 = _coefficient(coefficients, 6, u), _coefficient(coefficients, 7, u)
    here, there = u[start:stop], out[start:stop]
    if coefficients.shape[0] <= 4:
        for i in range(here.shape[0]):
            there[i] = here[i] * _cubic(here[i], c0, c1, c2, c3)
    else:
        for i in range(here.shape[0]):
            x = here[i]
            there[i] = x * _cubic(x, c0, c1, c2, c3 + x * _cubic(x, c4, c5, c6, c7))


@reorder
def combine(u, start, stop, rest, g, coefficients, out):
    """out = u (the polynomial `rest` + g times the other polynomial), saturated."""
    most = np.finfo(out.dtype).max
    here, given, there = u[start:stop], g[start:stop], out[start:stop]
    if rest.shape[0] <= 4:
        c0, c1 = _coefficient(coefficients, 0, u), _coefficient(coefficients, 1, u)
        c2, c3 = _coefficient(coefficients, 2, u), _coefficient(coefficients, 3, u)
        r0, r1 = _coefficient(rest, 0, u), _coefficient(rest, 1, u)
        r2, r3 = _coefficient(rest, 2, u), _coefficient(rest, 3, u)
        for i in range(here.shape[0]):
            x = here[i]
            y = (given[i] * x) * _cubic(x, c0, c1, c2, c3) + x * _cubic(x, r0, r1, r2, r3)
            y = most if y > most else y
            there[i] = -most if y < -most else y
        return
    evaluate(u, start, stop, rest, out)
    add_product(u, start, stop, g, coefficients, out)


@reorder
def add_product(u, start, stop, g, coefficients, out):
    """out += u g times the polynomial, saturated."""
    most = np.finfo(out.dtype).max
    c0, c1 = _coefficient(coefficients, 0, u), _coefficient(coefficients, 1, u)
    c2, c3 = _coefficient(coefficients, 2, u), _coefficient(coefficients, 3, u)
    c4, c5 = _coefficient(coefficients, 4, u), _coefficient(coefficients, 5, u)
    c6, c7 = _coefficient(coefficients, 6, u), _coefficient(coefficients, 7, u)
    here, given, there = u[start:stop], g[start:stop], out[start:stop]
    for i in range(there.shape[0]):
        x = here[i]
        y = there[i] + (given[i] * x) * _cubic(x, c0, c1, c2, c3 + x * _cubic(x, c4, c5, c6, c7))
        y = most if y > most else y
        there[i] = -most if y < -most else y
