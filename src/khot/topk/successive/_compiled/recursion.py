"""The recursion of one row: its near items one by one, its far items at a few nodes (see `nodes`).

The arrays hold M items: near ones, each of which counts once, and nodes, which count `many` times in the sum of a step.
Without far items this is the plain loop. Everything is in float64. Each step measures from its own largest item, which
keeps the digits of items that contend far below the first maximum.

A *dominant* item is the one near item of a step with p > 1/2, where there is one. Its 1 - p is the sum of the others:
1 - p itself has no digits left when p is close to 1. Where there is none, all items go through the same formulas, so
that equal keys stay exactly equal.

The steps fill two tables: `weights` (k, M), 0 at a dominant item (only two rows, used in turn, if no backward pass will
read them), and `record` (k, COLUMNS). The formulas of the backward pass are in ALGORITHM.md.
"""

import math

from khot._jit.compiler import fma, loop, no_nan, reorder
from khot._jit.passes import largest
from khot._jit.vector_math import exp64, inverse, larger, log1m
from khot.topk.successive._compiled import interpolation
from khot.topk.successive._compiled.constants import INEXACT, LARGEST, TRUNCATED

UNIT = 2.0**-53
FAR = 1e300  # logarithms saturate here
FAINT = 1e-200  # a total weight below this may have lost items to underflow
FINE = 0
# columns of the record of a step: DOMINANT is the index of the dominant item, or -1; p of an item is its weight times
# TO_P, its share among the items other than the dominant one is its weight times TO_SHARE
DOMINANT, TO_P, TO_SHARE, P_DOMINANT, LEFT_DOMINANT = range(5)


@fma
def gap(key, taken, key_m, taken_m):
    """Distance of an item from item m, in units of the keys; the order of the sums keeps the digits."""
    return (key - key_m) + (taken - taken_m)


@fma
def p_of(weights, record, j, i):
    """p of item i of the recursion in step j."""
    return record[j, P_DOMINANT] if record[j, DOMINANT] == i else weights[j, i] * record[j, TO_P]


@fma
def multiply(weights, record, many, near, k, s, tolerance, result):
    """Run k steps at a temperature at which errors do not grow, from the weights of the first step.

    Weights go from step to step by multiplication. `many` (D,) is the number of items that each node represents.
    Adds all p to result (M,). Returns INEXACT if weights underflow, so that `forward` has to run instead; TRUNCATED if
    an entry at a node, divided by t, exceeds the `tolerance`, beyond which the nodes do not represent the far items; or
    FINE.
    """
    row = 0
    total, first = _sum_and_largest(weights, 0, near)
    for j in range(k):
        mass = 0.0
        for q in range(many.shape[0]):
            mass += many[q] * weights[row, near + q]
        m, others = -1, 0.0
        if 2.0 * first > total + mass:
            m = _find(weights, row, first)
            weights[row, m] = 0.0
            others = _sum_and_largest(weights, row, near)[0] + mass
            total = others + first
        else:
            total += mass
        if mass < 0.0:
            return TRUNCATED
        if not total > FAINT or (m >= 0 and j < k - 1 and not others > FAINT):
            return INEXACT
        to_p = 1.0 / total
        p_dominant, left = first * to_p, others * to_p
        # the share of the last step is not needed
        record[j, DOMINANT], record[j, TO_P], record[j, TO_SHARE] = m, to_p, 1.0 / others if others > FAINT else 0.0
        record[j, P_DOMINANT], record[j, LEFT_DOMINANT] = p_dominant, left
        if m >= 0:
            result[m] += p_dominant
        if j == k - 1:
            for i in range(near + many.shape[0]):
                result[i] += weights[row, i] * to_p
            break
        following = (row + 1) % weights.shape[0]
        at_dominant = first * left**s if m >= 0 else 0.0
        _multiply(weights, row, following, near + many.shape[0], to_p, s, result)
        if m >= 0:
            weights[following, m] = at_dominant
        total, first = _sum_and_largest(weights, following, near)
        row = following
    for q in range(many.shape[0]):
        if not s * result[near + q] <= tolerance:
            return TRUNCATED
    return FINE


@reorder
def weigh(keys, near, length, threshold, top, s, weights):
    """Fill in the weights of the first step, of near items and of nodes."""
    for i in range(near):
        weights[0, i] = exp64((keys[i] - top) * s)
    if length > 0:
        at_threshold = exp64((threshold - top) * s)
        for q in range(length):
            weights[0, near + q] = at_threshold * interpolation.position(length, q)


@no_nan
def _sum_and_largest(weights, row, near):
    total, first = 0.0, 0.0
    for i in range(near):
        total += weights[row, i]
        first = larger(first, weights[row, i])
    return total, first


@fma
def _find(weights, row, x):
    m = 0
    while weights[row, m] != x:
        m += 1
    return m


@loop
def _multiply(weights, row, following, size, to_p, s, result):
    """Add p = weights * to_p to the result; the weights of the next step are these times (1 - p)^s."""
    if s == 1.0:
        for i in range(size):
            p = weights[row, i] * to_p
            result[i] += p
            weights[following, i] = weights[row, i] * (1.0 - p)
    elif s == 2.0:
        for i in range(size):
            p = weights[row, i] * to_p
            result[i] += p
            weights[following, i] = weights[row, i] * ((1.0 - p) * (1.0 - p))
    else:
        for i in range(size):
            p = weights[row, i] * to_p
            result[i] += p
            weights[following, i] = weights[row, i] * exp64(s * log1m(p))


@loop
def _first(keys, top, taken, alpha):
    """Index m of the largest item; fills in alpha, measured from the top key."""
    for i in range(keys.shape[0]):
        alpha[i] = (keys[i] - top) + taken[i]
    top = largest(alpha)
    m = 0
    while alpha[m] != top:
        m += 1
    return m


@fma
def _second(keys, taken, m):
    """Distance of the largest of all other items from item m."""
    result = -math.inf
    for i in range(keys.shape[0]):
        if i != m:
            result = max(result, gap(keys[i], taken[i], keys[m], taken[m]))
    return result


@reorder
def _weigh(keys, taken, near, many, m, s, origin, weights):
    """Fill in the weights of all items but m, at most 1, in units of e^origin; returns their sum."""
    key_m, taken_m = keys[m], taken[m]
    for i in range(keys.shape[0]):
        x = gap(keys[i], taken[i], key_m, taken_m) * s - origin
        weights[i] = exp64(x if x < 0.0 else 0.0)
    weights[m] = 0.0
    total = 0.0
    for i in range(near):
        total += weights[i]
    for q in range(many.shape[0]):
        total += many[q] * weights[near + q]
    return total


@reorder
def _take(weights, to_p, taken, result):
    for i in range(weights.shape[0]):
        p = weights[i] * to_p
        result[i] += p
        taken[i] += log1m(p)


@fma
def forward(keys, start, near, many, k, t, unit, rough, tolerance, promise, weights, record, gaps, result, spare):
    """Run k steps on the keys (M,), those of the `near` items, then those of nodes, with `start` added to them.

    Works at every temperature, more slowly than `multiply`. Fills in the weights and the record of the steps, and adds
    all p to result (M,). Returns TRUNCATED as soon as an entry at a node, divided by t, exceeds the `tolerance`;
    INEXACT if the error of a near entry may exceed `promise` (0: errors cannot grow), from rounding in multiples of
    `unit` and from the relative error `rough` of `many`; or FINE. `spare` (3, M) is a workspace.
    """
    size, top_key = keys.shape[0], largest(keys)
    s = inverse(t)
    taken, error = spare[0, :size], spare[1:]
    for i in range(size):
        taken[i], error[0, i], error[1, i] = start[i], 0.0, 0.0
    for j in range(k):
        here, about = weights[min(j, weights.shape[0] - 1), :size], record[j]
        m = _first(keys, top_key, taken, here)
        origin, lift = 0.0, 1.0
        total = _weigh(keys, taken, near, many, m, s, origin, here)
        if m < near and 0.0 <= total < 1e-250:  # m is so far above the others that they are measured from the second
            origin = max(_second(keys, taken, m) * s, -FAR)
            lift = exp64(origin)
            total = _weigh(keys, taken, near, many, m, s, origin, here)
        first = 1.0 / ((1.0 if m < near else many[m - near]) + lift * total)
        dominates = m < near and first > 0.5
        about[DOMINANT] = m if dominates else -1
        about[TO_P] = lift * first
        about[TO_SHARE] = 1.0 / total if total > 0.0 else 0.0
        about[P_DOMINANT] = first
        about[LEFT_DOMINANT] = lift * total * first
        if not dominates:
            here[m] = 1.0
        mass, top = 0.0, 0.0
        for q in range(many.shape[0]):
            mass += many[q] * here[near + q]
            top = max(top, result[near + q] + here[near + q] * about[TO_P])
        if mass < 0.0 or not first > 0.0 or s * top > tolerance:
            return TRUNCATED
        log_left = max(origin + math.log(total * first), -FAR) if dominates else 0.0
        if promise > 0.0:
            _grow(keys, taken, here, about, m, near, s, log_left, unit, rough * mass, error)
        if gaps.shape[0] > 0:
            for i in range(size):
                gaps[j, i] = gap(keys[i], taken[i] - start[i], keys[m], taken[m] - start[m])
        _take(here, about[TO_P], taken, result)
        if dominates:
            result[m] += first
            taken[m] += log_left
    if promise > 0.0:
        for i in range(size):
            if not error[1, i] <= promise:
                return INEXACT
    return FINE


@fma
def _grow(keys, taken, weights, record, m, near, s, log_left, unit, rough, error):
    """First-order bounds of the errors of alpha (row 0) and of the result (row 1) of the near items after a step.

    `rough` is the error of the total weight. An error e of alpha becomes (1 - p/t) e + p/t (the mean of e over the
    others).
    """
    dominates = log_left < 0.0
    spread, share = rough * record[TO_P] / s, rough * record[TO_SHARE] / s
    for i in range(near):
        here = error[0, i] + unit * abs(gap(keys[i], taken[i], keys[m], taken[m]))
        spread += weights[i] * record[TO_P] * here
        share += weights[i] * record[TO_SHARE] * here
    if dominates:
        spread += record[P_DOMINANT] * error[0, m]
    for i in range(near):
        rounding = unit * abs(gap(keys[i], taken[i], keys[m], taken[m]))
        here = error[0, i] + rounding
        p = weights[i] * record[TO_P]
        left, loss = 1.0 - p, 2.0 * p
        others = (spread - p * here) / left
        if dominates and i == m:
            p, left, loss, others = record[P_DOMINANT], record[LEFT_DOMINANT], -log_left, share
        error[1, i] += s * p * left * (here + others) + 4.0 * unit * p
        error[0, i] = abs(1.0 - s * p) * error[0, i] + s * p * (others + rounding)
        error[0, i] += unit * (abs(taken[i]) + 3.0 * loss)


@reorder
def _flow(weights, j, to_p, size, grad_p, r, grad, flow):
    """Fill in p times the cotangent of p, through both of its uses; returns the sum."""
    total = 0.0
    for i in range(size):
        p = weights[j, i] * to_p
        flow[i] = p * (grad_p[r, i] - grad[i] / (1.0 - p))
        total += flow[i]
    return total


@loop
def _pull_back(weights, j, near, many, flow, through, s, grad, grad_many):
    """Add the contribution of a step to the cotangents."""
    for i in range(near):
        grad[i] = saturate(grad[i] + s * (flow[i] + weights[j, i] * through))
    for q in range(many.shape[0]):
        i = near + q
        grad[i] = saturate(grad[i] + s * (flow[i] + many[q] * (weights[j, i] * through)))
        grad_many[q] = saturate(grad_many[q] + weights[j, i] * through)


@fma
def saturate(x):
    """The number nearest to x between -LARGEST and LARGEST."""
    x = LARGEST if x > LARGEST else x
    return -LARGEST if x < -LARGEST else x


@fma
def step_back(j, s, near, many, weights, record, grad_p, flow, grad, grad_many):
    """Propagate the cotangents back through step j. The cotangent of p is row j of grad_p (k, M), or its only row."""
    r = min(j, grad_p.shape[0] - 1)
    m, p, to_p = int(record[j, DOMINANT]), record[j, P_DOMINANT], record[j, TO_P]
    shift = _flow(weights, j, to_p, near + many.shape[0], grad_p, r, grad, flow)
    lift, at_dominant = 0.0, 0.0
    if m >= 0:
        at_dominant = saturate(grad[m] + s * (p * (record[j, LEFT_DOMINANT] * grad_p[r, m] - grad[m] - shift)))
        shift += p * grad_p[r, m]
        lift = p * grad[m] * record[j, TO_SHARE]
    _pull_back(weights, j, near, many, flow, lift - to_p * shift, s, grad, grad_many)
    if m >= 0:
        grad[m] = at_dominant


@fma
def backward(k, s, near, many, weights, record, grad_p, flow, grad, grad_many):
    """Reverse sweep: fill in the cotangents of the keys, grad (M,), and of `many`, grad_many (D,).

    grad_p (k or 1, M) is the cotangent of p; one row serves all steps. `flow` (M,) is a workspace.
    """
    for i in range(near + many.shape[0]):
        grad[i] = 0.0
    for q in range(many.shape[0]):
        grad_many[q] = 0.0
    for j in range(k - 1, -1, -1):
        step_back(j, s, near, many, weights, record, grad_p, flow, grad, grad_many)


@fma
def backward_with_t(k, s, near, many, weights, record, gaps, grad_p, flow, before, grad, grad_many):
    """Do what `backward` does, and return the cotangent of t; `before` (M,) is a workspace."""
    grad_t = 0.0
    for i in range(near + many.shape[0]):
        grad[i] = 0.0
    for q in range(many.shape[0]):
        grad_many[q] = 0.0
    for j in range(k - 1, -1, -1):
        for i in range(near + many.shape[0]):
            before[i] = grad[i]
        step_back(j, s, near, many, weights, record, grad_p, flow, grad, grad_many)
        grad_t -= _along(before, grad, gaps[j], near + many.shape[0], s)
    return grad_t


@reorder
def _along(before, after, gaps, size, s):
    """Inner product of the change of the cotangents of alpha with alpha / t."""
    total = 0.0
    for i in range(size):
        x = gaps[i] * s
        total += (after[i] - before[i]) * (x if x > -1e100 else -1e100)
    return total
