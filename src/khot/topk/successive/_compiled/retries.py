"""The recursion of one row, with ever more effort until its result can be trusted, and what is kept of it."""

import math
from typing import NamedTuple

import numpy as np

from khot._jit import passes
from khot._jit import workspace as scratch
from khot._jit.compiler import allocates, fma
from khot._jit.passes import largest
from khot.topk.successive._compiled import interpolation, precise, recursion
from khot.topk.successive._compiled.constants import COLD, COLDEST, PROMISE, PROMISE_NARROW, WIDEST
from khot.topk.successive._compiled.near_and_far import ACTIVE, Split, careful, dense, everything, with_moments
from khot.topk.successive._compiled.recursion import FINE, HEAD, INEXACT, P_HEAD, TO_P, TRUNCATED, Steps

KEPT = 8  # numbers of a state for each item of the row, at most
HEADER = 4  # numbers at the beginning of a state: whether it holds steps, how many are active, D, the bar
BAD, EMPTY, SHORT, NODES, ALL, PRECISE = range(6)  # the paths a row can take


class Solved(NamedTuple):
    """A row that went through the recursion: its M items are the active ones, then D nodes."""

    path: int
    split: Split
    many: np.ndarray  # (M,)
    steps: Steps
    result: np.ndarray  # (M,), the sum of p over the steps


@allocates
def items(row, t, parts, space):
    """Keys (M,) of the recursion, how far below them it starts, and how many items each stands for.

    A node starts t log u below the bar: added to a large bar, that would lose its digits.
    """
    active, length = parts.index.shape[0], parts.moments.shape[0]
    keys, many = scratch.numbers(space, active + length), scratch.numbers(space, active + length)
    start = scratch.zeros(space, active + length)
    for i in range(active):
        keys[i], many[i] = row[parts.index[i]], 1.0
    for q in range(length):
        keys[active + q], start[active + q] = parts.bar, t * interpolation.logarithm(length, q)
    interpolation.at_nodes(parts.moments, many[active:])
    return keys, start, many


@fma
def tolerance(row, t, length):
    """Up to which entry at a node, over t, the nodes stand for the passive items to 1e-7 or 1e-15."""
    if length == 0:
        return math.inf
    return 0.7 if length == 8 and not careful(row, t) else 0.15


@fma
def _promise(row, t, top):
    """Error up to which a result and its gradient can be trusted, or 0 where it need not be watched."""
    if t < COLDEST:
        return 0.0
    spread = top - passes.smallest(row)
    doubtful = spread <= WIDEST if t < COLD else 1e3 * t < spread < 1e12
    return (PROMISE if careful(row, t) else PROMISE_NARROW) if doubtful else 0.0


@allocates
def solve(row, k, t, parts, keep, keep_gaps, state, space):
    """Run the recursion until it can be trusted: with few nodes, more nodes, all items active; or with 32 digits.

    The steps are laid out in `state`, from which `load` brings them back, if there is room.
    """
    rough, unit, promise = 1e-14 if careful(row, t) else 1e-6, recursion.UNIT, -1.0
    multiply = t >= COLD and not keep_gaps
    while True:
        keys, start, many = items(row, t, parts, space)
        active, length = parts.index.shape[0], parts.moments.shape[0]
        room = _reserve(state, k, parts, many, keep, keep_gaps, space)
        steps = recursion.steps_in(room, k, keys.shape[0], keep, keep_gaps)
        result, most = scratch.zeros(space, keys.shape[0]), tolerance(row, t, length)
        if multiply:
            status = recursion.warm(keys, many, active, parts.bar, k, t, most, steps, result)
        else:
            promise = _promise(row, t, largest(keys)) if promise < 0.0 else promise
            status = recursion.forward(
                keys, start, many, active, k, t, unit, rough, most, promise, steps, result, space
            )
        if status == FINE and unit > 0.0:
            return Solved(NODES if length > 0 else ALL, parts, many, steps, result)
        if status == FINE:  # but for rounding errors
            for i in range(result.shape[0]):
                result[i] = 0.0
            precise.forward(keys, start, many, active, k, t, steps, result)
            return Solved(PRECISE, parts, many, steps, result)
        if status == INEXACT and multiply:
            multiply = False
        elif status == INEXACT and unit > 0.0:
            unit = 0.0
        elif status == TRUNCATED and length == 4:
            parts = with_moments(row, t, parts, 8, space)
        else:
            parts = everything(row, parts.u, space)


@fma
def most_active(n, k):
    """How many items can be active, for the row to be kept."""
    return n if dense(n, k) else ACTIVE * k + k


@fma
def state_size(n, k, itemsize):
    """Numbers that bring a row back."""
    active = most_active(n, k) + 8
    return HEADER + active + recursion.room_for(k, active, True, False) + (n * itemsize + 7) // 8


def kept_size(n, k, itemsize):
    """The same, or 0 where they would be many and the recursion had better run again."""
    active = n if dense.py_func(n, k) else ACTIVE * k + k  # torch.compile comes here with symbols
    if k * active > KEPT * n:
        return 0
    return HEADER + active + 8 + recursion.room_for.py_func(k, active + 8, True, False) + (n * itemsize + 7) // 8


@allocates
def divided(state, spare):
    """A state in two parts: room for u, which is `spare` (n,) if there is no state, and for the rest."""
    numbers = (spare.shape[0] * spare.itemsize + 7) // 8
    if state.shape[0] == 0:
        return spare, state
    rest = state.shape[0] - numbers
    return state[rest:].view(spare.dtype)[: spare.shape[0]], state[:rest]


@allocates
def _reserve(state, k, parts, many, keep, keep_gaps, space):
    active, length = parts.index.shape[0], parts.moments.shape[0]
    wanted = recursion.room_for(k, active + length, keep, keep_gaps)
    start = HEADER + active + length
    fits = state.shape[0] >= start + wanted
    if state.shape[0] > 0:
        state[0], state[1], state[2], state[3] = fits, active, length, parts.bar
    if not fits:
        return scratch.numbers(space, wanted)
    index = state[HEADER : HEADER + active].view(np.int64)
    for i in range(active):
        index[i] = parts.index[i]
    for d in range(length):
        state[HEADER + active + d] = many[active + d]
    return state[start:]


@allocates
def load(k, u, state, space):
    """What `solve` left in a state, and u."""
    active, length = int(state[1]), int(state[2])
    start = HEADER + active + length
    many = scratch.numbers(space, active + length)
    for i in range(active + length):
        many[i] = 1.0 if i < active else state[HEADER + i]
    parts = Split(state[HEADER : HEADER + active].view(np.int64), state[3], u, many[active:])
    steps = recursion.steps_in(state[start:], k, active + length, True, False)
    return Solved(NODES, parts, many, steps, space[:0])


@fma
def p_of(weights, record, j, i):
    """p of item i of the recursion in step j."""
    return record[j, P_HEAD] if record[j, HEAD] == i else weights[j, i] * record[j, TO_P]
