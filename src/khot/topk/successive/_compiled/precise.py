"""The successive softmax of one row with 32 digits, for the rows that amplify rounding errors."""

import math

import numpy as np

from khot._jit.compiler import ieee
from khot._jit.passes import largest
from khot.topk.successive._compiled import double_double as dd
from khot.topk.successive._compiled import recursion
from khot.topk.successive._compiled.recursion import DOMINANT, LEFT_DOMINANT, P_DOMINANT, TO_P, TO_SHARE


@ieee
def forward(keys, start, near, many, k, t, weights, record, gaps, result):
    """Run the steps of `recursion.forward` in pairs of float64 numbers, rounded where they are stored."""
    size, top = keys.shape[0], largest(keys)
    taken, below, weight = np.empty((size, 2)), np.empty((size, 2)), np.empty((size, 2))
    for i in range(size):
        taken[i, 0], taken[i, 1] = start[i], 0.0
    for j in range(k):
        here, about = weights[min(j, weights.shape[0] - 1)], record[j]
        m = _first(keys, top, taken)
        total, second = (0.0, 0.0), -math.inf
        for i in range(size):
            difference = dd.add(_pair(taken, i), dd.negate(_pair(taken, m)))
            gap = dd.add(dd.two_sum(keys[i], -keys[m]), difference)
            if gaps.shape[0] > 0:
                gaps[j, i] = recursion.gap(keys[i], taken[i, 0] - start[i], keys[m], taken[m, 0] - start[m])
            _store(dd.divide(gap, (t, 0.0)), below, i)
            _store(_exp(_pair(below, i)), weight, i)
            if i != m:
                total = dd.add(total, dd.multiply((_many(near, many, i), 0.0), _pair(weight, i)))
                second = max(second, below[i, 0])
        everything = dd.add(total, (_many(near, many, m), 0.0))
        first = dd.divide((1.0, 0.0), everything)
        dominates = m < near and first[0] > 0.5
        log_left = (0.0, 0.0)
        if dominates and size > 1:
            others = _log_of_others(below, near, many, m, (second, 0.0))
            log_left = dd.add(others, dd.negate(dd.log(dd.add((1.0, 0.0), dd.exp(others)))))
        share = 0.0
        for i in range(size):
            p = dd.multiply(_pair(weight, i), first)
            result[i] += p[0]
            if dominates:
                here[i] = math.exp(below[i, 0] - second) if i != m else 0.0
                share += _many(near, many, i) * here[i]
            else:
                here[i] = p[0]
            loss = log_left if dominates and i == m else _log_of_rest(p)
            _store(dd.add(_pair(taken, i), loss), taken, i)
        about[DOMINANT] = m if dominates else -1
        about[TO_P] = first[0] * math.exp(second) if dominates else 1.0
        about[TO_SHARE] = 1.0 / share if share > 0.0 else 0.0
        about[P_DOMINANT], about[LEFT_DOMINANT] = first[0], math.exp(log_left[0])


@ieee
def _many(near, many, i):
    """Number of items that item i of the recursion represents."""
    return 1.0 if i < near else many[i - near]


@ieee
def _pair(table, i):
    return table[i, 0], table[i, 1]


@ieee
def _store(pair, table, i):
    table[i, 0], table[i, 1] = pair


@ieee
def _first(keys, top, taken):
    m = 0
    for i in range(keys.shape[0]):
        if (keys[i] - top) + taken[i, 0] > (keys[m] - top) + taken[m, 0]:
            m = i
    return m


@ieee
def _exp(x):
    """e^x to 32 digits; to 16 digits below -80, where it is lost in a sum of 32 digits."""
    return dd.exp(x) if x[0] > -80.0 else (math.exp(x[0]), 0.0)


@ieee
def _log_of_rest(p):
    """log(1 - p), by its series for small p."""
    if p[0] > 1e-6:
        return dd.log(dd.add((1.0, 0.0), dd.negate(p)))
    series = (0.2 * p[0], 0.0)
    for inverse in ((0.25, 0.0), (1.0 / 3.0, 1.850371707708594e-17), (0.5, 0.0), (1.0, 0.0)):
        series = dd.add(inverse, series)
        series = dd.multiply(p, series)
    return dd.negate(series)


@ieee
def _log_of_others(below, near, many, m, second):
    """Logarithm, in pairs, of the total weight of all items but m; `second` is about the largest of them."""
    total = (0.0, 0.0)
    for i in range(below.shape[0]):
        if i != m:
            weight = _exp(dd.add(_pair(below, i), dd.negate(second)))
            total = dd.add(total, dd.multiply((_many(near, many, i), 0.0), weight))
    return dd.add(second, dd.log(total))
