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

from khot._jit import workspace as scratch
from khot._jit.compiler import allocates, fma, no_nan, reorder
from khot._jit.passes import largest
from khot._jit.vector_math import exp64, inverse, larger, log1m
from khot.topk.successive._compiled import interpolation
from khot.topk.successive._compiled.constants import LARGEST

UNIT = 2.0**-53
FAR = 1e300  # logarithms saturate here
FAINT = 1e-200  # a total weight below this may have lost items to underflow
FINE, TRUNCATED, INEXACT = 0, 1, 2
# columns of the record of a step: HEAD is the index of the head, or -1; p of an item is its weight times TO_P, its
# share among the items other than the head is its weight times TO_SHARE
HEAD, TO_P, TO_SHARE, P_HEAD, LEFT_HEAD = range(5)
COLUMNS = 5


class Steps(NamedTuple):
    """What k steps over M items leave for the results and for the way back."""

    weights: np.ndarray  # (k, M), 0 at a head; two rows, in turn, where nobody reads it
    record: np.ndarray  # (k, COLUMNS)
    gaps: np.ndarray  # (k, M), how far alpha, less its start, lies below the largest, or (0, M) where nobody reads it


@fma
def room_for(k, size, keep, keep_gaps):
    """Numbers that the steps take."""
    return (k if keep else 2) * size + k * COLUMNS + (k if keep_gaps else 0) * size


@allocates
def steps_in(room, k, size, keep, keep_gaps):
    """Steps laid out in a flat array of at least `room_for` numbers."""
    rows, gap_rows = k if keep else 2, k if keep_gaps else 0
    a = rows * size
    b = a + k * COLUMNS
    c = b + gap_rows * size
    return Steps(room[:a].reshape(rows, size), room[a:b].reshape(k, COLUMNS), room[b:c].reshape(gap_rows, size))


@fma
def gap(key, taken, key_m, taken_m):
    """How far an item lies below the first, in units of the keys; the order of the sums keeps the digits."""
    return (key - key_m) + (taken - taken_m)


@fma
def warm(keys, many, active, bar, k, t, tolerance, steps, result):
    """`forward` at temperatures at which errors do not grow: weights go from step to step by multiplication.

    Returns INEXACT where weights underflow, so that `forward` must do it.
    """
    s = inverse(t)
    weigh(keys, active, keys.shape[0] - active, bar, largest(keys), s, steps.weights)
    return multiply(steps.weights, steps.record, many[active:], active, k, s, tolerance, result)


@fma
def multiply(weights, record, many, active, k, s, tolerance, result):
    """The steps of `warm`, from the weights of the first; `many` (D,) tells how many items a node stands for."""
    row = 0
    total, first = _sum_and_largest(weights, 0, active)
    for j in range(k):
        mass = 0.0
        for q in range(many.shape[0]):
            mass += many[q] * weights[row, active + q]
        m, others = -1, 0.0
        if 2.0 * first > total + mass:
            m = _find(weights, row, first)
            weights[row, m] = 0.0
            others = _sum_and_largest(weights, row, active)[0] + mass
            total = others + first
        else:
            total += mass
        if mass < 0.0:
            return TRUNCATED
        if not total > FAINT or (m >= 0 and j < k - 1 and not others > FAINT):
            return INEXACT
        to_p = 1.0 / total
        p_head, left = first * to_p, others * to_p
        # of the last step nobody needs the share
        record[j, HEAD], record[j, TO_P], record[j, TO_SHARE] = m, to_p, 1.0 / others if others > FAINT else 0.0
        record[j, P_HEAD], record[j, LEFT_HEAD] = p_head, left
        if m >= 0:
            result[m] += p_head
        if j == k - 1:
            for i in range(active + many.shape[0]):
                result[i] += weights[row, i] * to_p
            break
        following = (row + 1) % weights.shape[0]
        at_head = first * left**s if m >= 0 else 0.0
        _multiply(weights, row, following, active + many.shape[0], to_p, s, result)
        if m >= 0:
            weights[following, m] = at_head
        total, first = _sum_and_largest(weights, following, active)
        row = following
    for q in range(many.shape[0]):
        if not s * result[active + q] <= tolerance:
            return TRUNCATED
    return FINE


@reorder
def weigh(keys, active, length, bar, top, s, weights):
    """Weights of the first step, of active items and of nodes."""
    for i in range(active):
        weights[0, i] = exp64((keys[i] - top) * s)
    if length > 0:
        at_bar = exp64((bar - top) * s)
        for q in range(length):
            weights[0, active + q] = at_bar * interpolation.position(length, q)


@no_nan
def _sum_and_largest(weights, row, active):
    total, first = 0.0, 0.0
    for i in range(active):
        total += weights[row, i]
        first = larger(first, weights[row, i])
    return total, first


@fma
def _find(weights, row, x):
    m = 0
    while weights[row, m] != x:
        m += 1
    return m


@fma
def _multiply(weights, row, following, size, to_p, s, result):
    """Add p = weights to_p to the result; the following weights are times (1 - p)^s."""
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


@fma
def _first(keys, top, taken, alpha):
    """Index of the first item; alpha, from the top key, is left behind."""
    for i in range(keys.shape[0]):
        alpha[i] = (keys[i] - top) + taken[i]
    top = largest(alpha)
    m = 0
    while alpha[m] != top:
        m += 1
    return m


@fma
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


@allocates
def forward(keys, start, many, active, k, t, unit, rough, tolerance, promise, steps, result, space):
    """Run k steps on the keys (M,), those of the `active` items, then those of nodes, with `start` added to them.

    Fills the steps and adds all p to result (M,). Returns TRUNCATED as soon as an entry at a node over t is above the
    `tolerance`, beyond which the nodes do not stand for the passive items; INEXACT if rounding errors, in multiples of
    `unit`, and the relative error `rough` of how many items a node stands for may have grown beyond `promise` (0: they
    cannot); or FINE.
    """
    size, top_key = keys.shape[0], largest(keys)
    s = inverse(t)
    taken = scratch.numbers(space, size)
    for i in range(size):
        taken[i] = start[i]
    errors = scratch.zeros(space, 2 * size if promise > 0.0 else 0)
    error = errors.reshape(2, errors.shape[0] // 2)
    for j in range(k):
        weights, record = steps.weights[min(j, steps.weights.shape[0] - 1)], steps.record[j]
        m = _first(keys, top_key, taken, weights)
        origin, lift = 0.0, 1.0
        total = _weigh(keys, taken, many, m, s, origin, weights)
        if (
            m < active and 0.0 <= total < 1e-250
        ):  # the first is so far above the others that they are weighed from the second
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
            for i in range(size):
                steps.gaps[j, i] = gap(keys[i], taken[i] - start[i], keys[m], taken[m] - start[m])
        _take(weights, record[TO_P], taken, result)
        if leads:
            result[m] += head
            taken[m] += log_left
    for i in range(error.shape[1]):
        if not error[1, i] <= promise:
            return INEXACT
    return FINE


@fma
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
def _flow(weights, j, to_p, size, grad_p, r, grad, flow):
    """Cotangent of p through both its uses, times p, and the sum of that."""
    total = 0.0
    for i in range(size):
        p = weights[j, i] * to_p
        flow[i] = p * (grad_p[r, i] - grad[i] / (1.0 - p))
        total += flow[i]
    return total


@fma
def _pull_back(weights, j, active, many, flow, through, s, grad, grad_many):
    """Add to the cotangents what a step brings."""
    for i in range(active):
        grad[i] = saturate(grad[i] + s * (flow[i] + weights[j, i] * through))
    for q in range(many.shape[0]):
        i = active + q
        grad[i] = saturate(grad[i] + s * (flow[i] + many[q] * (weights[j, i] * through)))
        grad_many[q] = saturate(grad_many[q] + weights[j, i] * through)


@fma
def saturate(x):
    """The number nearest to x between -LARGEST and LARGEST."""
    x = LARGEST if x > LARGEST else x
    return -LARGEST if x < -LARGEST else x


@fma
def step_back(j, s, active, many, weights, record, grad_p, flow, grad, grad_many):
    """Take the cotangents back over the step j. Row j of grad_p (k, M) is the cotangent of p, or the only row."""
    r = min(j, grad_p.shape[0] - 1)
    m, p, to_p = int(record[j, HEAD]), record[j, P_HEAD], record[j, TO_P]
    shift = _flow(weights, j, to_p, active + many.shape[0], grad_p, r, grad, flow)
    lift, at_head = 0.0, 0.0
    if m >= 0:
        at_head = saturate(grad[m] + s * (p * (record[j, LEFT_HEAD] * grad_p[r, m] - grad[m] - shift)))
        shift += p * grad_p[r, m]
        lift = p * grad[m] * record[j, TO_SHARE]
    _pull_back(weights, j, active, many, flow, lift - to_p * shift, s, grad, grad_many)
    if m >= 0:
        grad[m] = at_head


@fma
def backward(k, s, active, many, weights, record, grad_p, flow, grad, grad_many):
    """Reverse sweep: cotangents of the keys, grad (M,), and of how many items a node stands for, grad_many (D,).

    grad_p (k or 1, M) is the cotangent of p; one row serves all steps. `flow` (M,) is for use on the way.
    """
    for i in range(active + many.shape[0]):
        grad[i] = 0.0
    for q in range(many.shape[0]):
        grad_many[q] = 0.0
    for j in range(k - 1, -1, -1):
        step_back(j, s, active, many, weights, record, grad_p, flow, grad, grad_many)


@allocates
def backward_with_t(k, s, active, many, steps, grad_p, flow, grad, grad_many, space):
    """The same with gaps; returns the cotangent of t."""
    size = active + many.shape[0]
    grad_t, before = 0.0, scratch.numbers(space, size)
    for i in range(size):
        grad[i] = 0.0
    for q in range(many.shape[0]):
        grad_many[q] = 0.0
    for j in range(k - 1, -1, -1):
        for i in range(size):
            before[i] = grad[i]
        step_back(j, s, active, many, steps.weights, steps.record, grad_p, flow, grad, grad_many)
        grad_t -= _along(before, grad, steps.gaps[j], s)
    return grad_t


@reorder
def _along(before, after, gaps, s):
    """How the change of the cotangents of alpha lies along alpha / t."""
    total = 0.0
    for i in range(gaps.shape[0]):
        x = gaps[i] * s
        total += (after[i] - before[i]) * (x if x > -1e100 else -1e100)
    return total
