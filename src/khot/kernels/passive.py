"""Passes over all n items of a row, vectorised, in the dtype of the row.

Sums are taken block by block and chunk by chunk, in an order that n alone decides, so that a row has one result whether
its chunks go through one thread or many.
"""

import math

import numpy as np

from khot.kernels.compiled import exact, no_nan, reorder
from khot.kernels.elementary import exponential, largest

BLOCK = 512  # items whose powers stay in the first-level cache
CHUNK = 64 * BLOCK  # items that one thread takes at a time in a very long row


@exact
def width(n, size):
    """Items under one maximum, a power of two, such that there are several times `size` maxima if n allows it."""
    result = 1
    while result < 64 and 8 * result * size <= n:
        result *= 2
    return result


@reorder
def scan(row, start, stop, width, maxima):
    """Maximum of every `width` items; returns how many are NaN and how many absent."""
    zero, one, low = row.dtype.type(0), row.dtype.type(1), row.dtype.type(-math.inf)
    nan, absent = 0, 0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        strange, gone = zero, zero  # counted in the dtype of the row, which keeps the vector lanes full
        here = row[first:last]
        for i in range(here.shape[0]):
            strange += zero if here[i] == here[i] else one
            gone += one if here[i] == low else zero
        nan += int(strange)
        absent += int(gone)
        for i in range(first, last, width):
            maxima[i // width] = largest(row[i : min(i + width, last)])
    return nan, absent


@no_nan
def smallest(row):
    """The smallest present item."""
    absent, low = row.dtype.type(-math.inf), row.dtype.type(math.inf)
    for i in range(row.shape[0]):
        x = row[i] if row[i] > absent else low
        low = x if x < low else low
    return low


@exact
def nth_largest(values, n):
    """The n-th largest (n >= 1) of an array, which is put out of order (Hoare's selection)."""
    low, high, place = 0, values.shape[0] - 1, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@exact
def position(index, item):
    """How many of the ascending indices are smaller than `item`."""
    low, high = 0, index.shape[0]
    while low < high:
        middle = (low + high) // 2
        if index[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@exact
def choose(row, size, width, maxima):
    """Ascending indices of `size` to 5/4 `size` of the largest items.

    The threshold is the size-th largest maximum. What passes it is cut to `size` by a selection if need be.
    """
    bar = nth_largest(maxima.copy(), size)
    above = _at_least(row, bar, width, maxima)
    if 4 * above.shape[0] <= 5 * size:
        return above
    values = np.empty(above.shape[0], row.dtype)
    for i in range(above.shape[0]):
        values[i] = row[above[i]]
    bar = nth_largest(values, size)
    room = size
    for i in above:
        room -= row[i] > bar
    index = np.empty(size, np.int64)
    count = 0
    for i in above:
        tied = row[i] == bar and room > 0
        if row[i] > bar or tied:
            index[count] = i
            count += 1
            room -= tied
    return index


@exact
def _at_least(row, bar, width, maxima):
    """Ascending indices of the items >= bar, of which `maxima` tell where they can be."""
    groups = 0
    for b in range(maxima.shape[0]):
        groups += maxima[b] >= bar
    found = np.empty(groups * width + 1, np.int64)  # one more, which is written and not kept
    count = 0
    for b in range(maxima.shape[0]):
        if maxima[b] >= bar:
            for i in range(b * width, min(b * width + width, row.shape[0])):
                found[count] = i
                count += row[i] >= bar
    return found[:count]


@reorder
def decay(row, start, stop, threshold, s, active, u, moments):
    """u = exp((row - threshold) s), 0 at the active items; adds the sums of its powers 1, 2, ... to moments."""
    zero = row.dtype.type(0)
    powers = np.empty(BLOCK, row.dtype)
    done = position(active, start)
    for first in range(start, stop, BLOCK):
        size = min(BLOCK, stop - first)
        keys, here = row[first : first + size], u[first : first + size]
        for i in range(size):
            x = (keys[i] - threshold) * s
            here[i] = exponential(x if x < zero else zero)
        while done < active.shape[0] and active[done] < first + size:
            u[active[done]] = zero
            done += 1
        for i in range(size):
            powers[i] = here[i]
        _add_powers(powers, here, moments)


@reorder
def project(g, u, start, stop, moments):
    """Adds the sums of g u, g u^2, ... to moments."""
    powers = np.empty(BLOCK, u.dtype)
    for first in range(start, stop, BLOCK):
        size = min(BLOCK, stop - first)
        given, here = g[first : first + size], u[first : first + size]
        for i in range(size):
            powers[i] = given[i] * here[i]
        _add_powers(powers, here, moments)


@reorder
def _add_powers(powers, u, moments):
    """Adds the sums of powers, powers u, powers u^2, ... to moments, four at a time; the powers are used up."""
    for d in range(0, moments.shape[0], 4):
        sum0 = sum1 = sum2 = sum3 = u.dtype.type(0)
        for i in range(u.shape[0]):
            x0 = powers[i]
            x1 = x0 * u[i]
            x2 = x1 * u[i]
            x3 = x2 * u[i]
            sum0 += x0
            sum1 += x1
            sum2 += x2
            sum3 += x3
            powers[i] = x3 * u[i]
        moments[d] += sum0
        moments[d + 1] += sum1
        moments[d + 2] += sum2
        moments[d + 3] += sum3


@reorder
def evaluate(u, start, stop, coefficients, out):
    """out = u times the polynomial in u."""
    value = np.empty(BLOCK, u.dtype)
    for first in range(start, stop, BLOCK):
        size = min(BLOCK, stop - first)
        here, there = u[first : first + size], out[first : first + size]
        _polynomial(here, coefficients, value)
        for i in range(size):
            there[i] = value[i] * here[i]


@reorder
def combine(u, start, stop, rest, g, coefficients, out):
    """out = u (the polynomial `rest` + the sum over r of g_r times the polynomial r), saturated."""
    most = np.finfo(out.dtype).max
    value, total = np.empty(BLOCK, u.dtype), np.empty(BLOCK, u.dtype)
    for first in range(start, stop, BLOCK):
        size = min(BLOCK, stop - first)
        here, there = u[first : first + size], out[first : first + size]
        _polynomial(here, rest, total)
        for r in range(g.shape[0]):
            _polynomial(here, coefficients[r], value)
            given = g[r, first : first + size]
            for i in range(size):
                total[i] += value[i] * given[i]
        for i in range(size):
            x = total[i] * here[i]
            x = x if x < most else most
            there[i] = x if x > -most else -most


@reorder
def _polynomial(u, coefficients, value):
    """The polynomial in u, four coefficients at a time."""
    for i in range(u.shape[0]):
        value[i] = 0
    for d in range(coefficients.shape[0] - 4, -1, -4):
        c0, c1 = u.dtype.type(coefficients[d]), u.dtype.type(coefficients[d + 1])
        c2, c3 = u.dtype.type(coefficients[d + 2]), u.dtype.type(coefficients[d + 3])
        for i in range(u.shape[0]):
            value[i] = (((value[i] * u[i] + c3) * u[i] + c2) * u[i] + c1) * u[i] + c0
