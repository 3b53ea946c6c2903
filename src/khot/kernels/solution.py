"""The recursion of one row, with ever more effort until its result can be trusted, and what is kept of it."""

import math
from typing import NamedTuple

import numpy as np

from khot.kernels import interpolation, passive, precise, recursion
from khot.kernels.compiled import exact
from khot.kernels.recursion import FINE, HEAD, INEXACT, P_HEAD, TO_P, TRUNCATED, Steps
from khot.kernels.split import ACTIVE, DENSE, Split, everything, with_moments

COLD = 0.5  # below this temperature errors grow, and rows are computed in float64 throughout
COLDEST, WIDEST = 0.05, 50.0  # accuracy is promised down to this temperature and up to this range of the keys
KEPT = 8  # numbers of a state for each item of the row, at most
HEADER = 4  # numbers at the beginning of a state: whether it holds steps, how many are active, D, the threshold
BAD, EMPTY, SHORT, NODES, ALL, PRECISE = range(6)  # the paths a row can take


class Solved(NamedTuple):
    """A row that went through the recursion: its M items are the active ones, then D nodes."""

    path: int
    split: Split
    many: np.ndarray  # (M,)
    steps: Steps
    result: np.ndarray  # (M,), the sum of p over the steps


@exact
def trivial(seen, k, t):
    """The path of a row that needs no recursion, or -1."""
    if seen.nan > 0 or seen.largest == math.inf or not 0.0 < t < math.inf or k < 0:
        return BAD
    if k == 0:
        return EMPTY
    return SHORT if seen.present < k else -1


@exact
def items(row, t, parts):
    """Keys (M,) of the recursion, and how many items each stands for."""
    active, length = parts.index.shape[0], parts.moments.shape[0]
    keys, many = np.empty(active + length), np.empty(active + length)
    for i in range(active):
        keys[i], many[i] = row[parts.index[i]], 1.0
    for q in range(length):
        keys[active + q] = parts.threshold + t * math.log(interpolation.positions(length)[q])
    interpolation.at_nodes(parts.moments, many[active:])
    return keys, many


@exact
def _tolerance(row, length):
    """Up to which entry at a node, over t, the nodes stand for the passive items to 1e-7 or 1e-15."""
    if length == 0:
        return math.inf
    if length == 4:
        return 0.15
    return 0.7 if row.itemsize == 4 else 0.15


@exact
def _promise(row, seen, t):
    """Error up to which a result and its gradient can be trusted, or 0 where it need not be watched."""
    if t < COLDEST:
        return 0.0
    spread = seen.largest - passive.smallest(row)
    doubtful = spread <= WIDEST if t < COLD else 1e3 * t < spread < 1e12
    return (1e-11 if row.itemsize == 4 else 5e-13) if doubtful else 0.0


@exact
def solve(row, k, t, seen, parts, keep, keep_gaps, state):
    """Run the recursion until it can be trusted: with few nodes, more nodes, all items active; or with 32 digits.

    The steps are laid out in `state`, from which `load` brings them back, if there is room.
    """
    promise, rough, unit = _promise(row, seen, t), 1e-6 if row.itemsize == 4 else 1e-14, recursion.UNIT
    while True:
        keys, many = items(row, t, parts)
        active, length = parts.index.shape[0], parts.moments.shape[0]
        steps = recursion.steps_in(_reserve(state, k, parts, keep, keep_gaps), k, keys.shape[0], keep, keep_gaps)
        result, tolerance = np.zeros(keys.shape[0]), _tolerance(row, length)
        status = recursion.forward(
            keys, many, active, parts.threshold, k, t, unit, rough, tolerance, promise, steps, result
        )
        if status == FINE and unit > 0.0:
            return Solved(NODES if length > 0 else ALL, parts, many, steps, result)
        if status == FINE:  # but for rounding errors
            for i in range(result.shape[0]):
                result[i] = 0.0
            precise.forward(keys, many, active, parts.threshold, k, t, steps, result)
            return Solved(PRECISE, parts, many, steps, result)
        if status == INEXACT and unit > 0.0:
            unit = 0.0
        elif status == TRUNCATED and length == 4:
            parts = with_moments(row, t, parts, 8)
        else:
            parts = everything(row, seen.present)


def state_size(n, k):
    """Numbers that bring a row back, or 0 where they would be many and the recursion had better run again."""
    active = n if n < DENSE * k else ACTIVE * k + k
    if k * active > KEPT * n:
        return 0
    return HEADER + active + 8 + recursion.room_for.py_func(k, active + 8, True, False)


@exact
def _reserve(state, k, parts, keep, keep_gaps):
    active, length = parts.index.shape[0], parts.moments.shape[0]
    wanted = recursion.room_for(k, active + length, keep, keep_gaps)
    start = HEADER + active + length
    fits = state.shape[0] >= start + wanted
    if state.shape[0] > 0:
        state[0], state[1], state[2], state[3] = fits, active, length, parts.threshold
    if not fits:
        return np.empty(wanted)
    for i in range(active):
        state[HEADER + i] = parts.index[i]
    for d in range(length):
        state[HEADER + active + d] = parts.moments[d]
    return state[start:]


@exact
def load(row, k, t, state):
    """What `solve` left in a state; u is yet to be filled."""
    active, length = int(state[1]), int(state[2])
    start = HEADER + active + length
    index = np.empty(active, np.int64)
    for i in range(active):
        index[i] = int(state[HEADER + i])
    u = np.empty(row.shape[0] if length > 0 else 0, row.dtype)
    parts = Split(index, state[3], u, state[HEADER + active : start])
    steps = recursion.steps_in(state[start:], k, active + length, True, False)
    return Solved(NODES, parts, items(row, t, parts)[1], steps, np.empty(0))


@exact
def p_of(steps, j, i):
    """p of item i of the recursion in step j."""
    return steps.record[j, P_HEAD] if steps.record[j, HEAD] == i else steps.weights[j, i] * steps.record[j, TO_P]
