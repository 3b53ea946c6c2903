"""The successive softmax of one row: its active items one by one, the passive rest at a few nodes (see `nodes`).

The arrays hold M items: active ones, each of which counts once, and nodes, which count `many` times in the sum of a
step. With no passive items this is the plain loop. All in float64; a step measures from its own largest item, which
keeps the digits of items that contend far below the first maximum.

A *head* is the one active item of a step with p > 1/2, where there is one. Its 1 - p is the sum of the others: 1 - p
itself has no digits left when p is close to 1. Where there is none, all items go through the same formulas, so that
equal keys stay exactly equal.
"""

import math
from typing import NamedTuple

import numpy as np

from khot.kernels.compiled import exact, reorder
from khot.kernels.elementary import exp64, largest, log1m

UNIT = 2.0**-53
LARGEST = 1e200  # cotangents saturate here: times n it is still far from overflow
FAR = 1e300  # and logarithms here
FINE, TRUNCATED, INEXACT = 0, 1, 2
# columns of the record of a step: HEAD is the index of the head, or -1; p of an item is its weight times TO_P, its
# share among the items other than the head is its weight times TO_SHARE
HEAD, TO_P, TO_SHARE, P_HEAD, LEFT_HEAD = range(5)
COLUMNS = 5


class Steps(NamedTuple):
    """What k steps over M items leave for the results and for the way back."""

    weights: np.ndarray  # (k, M), 0 at a head; a single row, overwritten, where nobody reads it
    record: np.ndarray  # (k, COLUMNS)
    gaps: np.ndarray  # (k, M), how far alpha, less t log u, lies below the largest, or (0, M) where nobody reads it


@exact
def room_for(k, size, keep, keep_gaps):
    """Numbers that the steps take."""
    return (k if keep else 1) * size + k * COLUMNS + (k if keep_gaps else 0) * size


@exact
def steps_in(room, k, size, keep, keep_gaps):
    """Steps laid out in a flat array of at least `room_for` numbers."""
    rows, gap_rows = k if keep else 1, k if keep_gaps else 0
    a = rows * size
    b = a + k * COLUMNS
    c = b + gap_rows * size
    return Steps(room[:a].reshape(rows, size), room[a:b].reshape(k, COLUMNS), room[b:c].reshape(gap_rows, size))


@exact
def sharpness(t):
    """1 / t, finite."""
    return min(1.0 / t, FAR)


@exact
def gap(key, taken, key_m, taken_m):
    """How far an item lies below the first, in units of the keys; the order of the sums keeps the digits."""
    return (key - key_m) + (taken - taken_m)


@exact
def _first(keys, taken, alpha):
    """Index of the first item; alpha is left behind."""
    for i in range(keys.shape[0]):
        alpha[i] = keys[i] + taken[i]
    top = largest(alpha)
    m = 0
    while alpha[m] != top:
        m += 1
    return m


@exact
def _second(keys, taken, m):
    """How far the largest of all but the item m lies below it."""
    result = -math.inf
    for i in range(keys.shape[0]):
        if i != m:
            result = max(result, gap(keys[i], taken[i], keys[m], taken[m]))
    return result


@reorder
def _weigh(keys, taken, many, m, s, origin, weights):
    """Weights in units of e^origin, at most 1, of all items but the first, and their sum."""
    key_m, taken_m = keys[m], taken[m]
    for i in range(keys.shape[0]):
        x = gap(keys[i], taken[i], key_m, taken_m) * s - origin
        weights[i] = exp64(x if x < 0.0 else 0.0)
    weights[m] = 0.0
    total = 0.0
    for i in range(keys.shape[0]):
        total += many[i] * weights[i]
    return total


@reorder
def _take(weights, to_p, taken, result):
    for i in range(weights.shape[0]):
        p = weights[i] * to_p
        result[i] += p
        taken[i] += log1m(p)


@exact
def forward(keys, many, active, threshold, k, t, unit, rough, tolerance, promise, steps, result):
    """Run k steps on the keys (M,): the `active` ones, then those of nodes, t log u above the threshold.

    Fills the steps and adds all p to result (M,). Returns TRUNCATED as soon as an entry at a node over t is above the
    `tolerance`, beyond which the nodes do not stand for the passive items; INEXACT if rounding errors, in multiples of
    `unit`, and the relative error `rough` of how many items a node stands for may have grown beyond `promise` (0: they
    cannot); or FINE.
    """
    size = keys.shape[0]
    s = sharpness(t)
    taken = np.zeros(size)
    error = np.zeros((2, size if promise > 0.0 else 0))
    for j in range(k):
        weights, record = steps.weights[min(j, steps.weights.shape[0] - 1)], steps.record[j]
        m = _first(keys, taken, weights)
        origin, lift = 0.0, 1.0
        total = _weigh(keys, taken, many, m, s, origin, weights)
        if total < 1e-250:  # the first is so far above the others that they are weighed from the second
            origin = max(_second(keys, taken, m) * s, -FAR)
            lift = exp64(origin)
            total = _weigh(keys, taken, many, m, s, origin, weights)
        head = 1.0 / (many[m] + lift * total)
        leads = m < active and head > 0.5
        record[HEAD] = m if leads else -1
        record[TO_P] = lift * head
        record[TO_SHARE] = 1.0 / total if total > 0.0 else 0.0
        record[P_HEAD] = head
        record[LEFT_HEAD] = lift * total * head
        if not leads:
            weights[m] = 1.0
        mass, top = 0.0, 0.0
        for i in range(active, size):
            mass += many[i] * weights[i]
            top = max(top, result[i] + weights[i] * record[TO_P])
        if mass < 0.0 or not head > 0.0 or s * top > tolerance:
            return TRUNCATED
        log_left = max(origin + math.log(total * head), -FAR) if leads else 0.0
        if promise > 0.0:
            _grow(keys, taken, weights, record, m, active, s, log_left, unit, rough * mass, error)
        if steps.gaps.shape[0] > 0:
            at_m = keys[m] if m < active else threshold
            for i in range(size):
                steps.gaps[j, i] = gap(keys[i] if i < active else threshold, taken[i], at_m, taken[m])
        _take(weights, record[TO_P], taken, result)
        if leads:
            result[m] += head
            taken[m] += log_left
    for i in range(error.shape[1]):
        if not error[1, i] <= promise:
            return INEXACT
    return FINE


@exact
def _grow(keys, taken, weights, record, m, active, s, log_left, unit, rough, error):
    """First-order bounds of the errors of alpha (row 0) and of the result (row 1) of the active items after a step.

    `rough` is the error of the total weight. An error e of alpha becomes (1 - p/t) e + p/t (the mean of e over the
    others).
    """
    leads = log_left < 0.0
    spread, share = rough * record[TO_P] / s, rough * record[TO_SHARE] / s
    for i in range(active):
        here = error[0, i] + unit * abs(gap(keys[i], taken[i], keys[m], taken[m]))
        spread += weights[i] * record[TO_P] * here
        share += weights[i] * record[TO_SHARE] * here
    if leads:
        spread += record[P_HEAD] * error[0, m]
    for i in range(active):
        rounding = unit * abs(gap(keys[i], taken[i], keys[m], taken[m]))
        here = error[0, i] + rounding
        p = weights[i] * record[TO_P]
        left, loss = 1.0 - p, 2.0 * p
        others = (spread - p * here) / left
        if leads and i == m:
            p, left, loss, others = record[P_HEAD], record[LEFT_HEAD], -log_left, share
        error[1, i] += s * p * left * (here + others) + 4.0 * unit * p
        error[0, i] = abs(1.0 - s * p) * error[0, i] + s * p * (others + rounding)
        error[0, i] += unit * (abs(taken[i]) + 3.0 * loss)


@reorder
def _mean_cotangent(weights, to_p, grad_p, grad):
    total = 0.0
    for i in range(weights.shape[0]):
        p = weights[i] * to_p
        total += p * (grad_p[i] - grad[i] / (1.0 - p))
    return total


@exact
def _pull_back(weights, many, to_p, lift, shift, s, grad_p, grad, grad_many):
    for i in range(weights.shape[0]):
        p = weights[i] * to_p
        through_sum = weights[i] * lift - p * shift
        change = s * (p * (grad_p[i] - grad[i] / (1.0 - p)) + many[i] * through_sum)
        grad[i] = saturate(grad[i] + change)
        grad_many[i] = saturate(grad_many[i] + through_sum)


@reorder
def _along(before, after, gaps, s):
    """How the change of the cotangents of alpha lies along alpha / t."""
    total = 0.0
    for i in range(gaps.shape[0]):
        x = gaps[i] * s
        total += (after[i] - before[i]) * (x if x > -1e100 else -1e100)
    return total


@exact
def saturate(x):
    """The number nearest to x between -LARGEST and LARGEST."""
    x = x if x < LARGEST else LARGEST
    return x if x > -LARGEST else -LARGEST


@exact
def backward(k, t, many, steps, grad_p, grad, grad_many):
    """Reverse sweep: cotangents of the keys, grad (M,), of how many items a node stands for, grad_many (M,), and of t.

    grad_p (k or 1, M) is the cotangent of p; one row serves all steps. That of t needs the gaps; without them it is 0.
    """
    s = sharpness(t)
    for i in range(grad.shape[0]):
        grad[i], grad_many[i] = 0.0, 0.0
    grad_t, before = 0.0, np.empty(grad.shape[0] if steps.gaps.shape[0] > 0 else 0)
    for j in range(k - 1, -1, -1):
        weights, record, g = steps.weights[j], steps.record[j], grad_p[min(j, grad_p.shape[0] - 1)]
        m, p = int(record[HEAD]), record[P_HEAD]
        for i in range(before.shape[0]):
            before[i] = grad[i]
        shift = _mean_cotangent(weights, record[TO_P], g, grad)
        lift, at_head = 0.0, 0.0
        if m >= 0:
            at_head = saturate(grad[m] + s * (p * (record[LEFT_HEAD] * g[m] - grad[m] - shift)))
            shift += p * g[m]
            lift = p * grad[m] * record[TO_SHARE]
        _pull_back(weights, many, record[TO_P], lift, shift, s, g, grad, grad_many)
        if m >= 0:
            grad[m] = at_head
        if before.shape[0] > 0:
            grad_t -= _along(before, grad, steps.gaps[j], s)
    return grad_t
