"""What the forward pass leaves of a row, for its results and for the backward pass: a flat array of float64.

    header, index (room), keys (room), many (MOST_NODES), weights (rows, room), record (steps, COLUMNS),
    gaps (gap_rows, room), u (n)

`room` is the number of items of the recursion at most: near items first, then nodes. The layout is known here only; all
else asks for views. The same row of a table serves as memory of its forward pass and as state of its backward pass.
"""

from typing import NamedTuple

import numpy as np

from khot._jit.compiler import view

HEADER = 6  # numbers at the beginning:
SOLVED, NEAR, LENGTH, THRESHOLD, LARGEST_KEY, SMALLEST_KEY = range(HEADER)
MOST_NODES = 8
COLUMNS = 5  # of the record of a step, see `recursion`


class Layout(NamedTuple):
    """Sizes that the rows of a table have in common."""

    room: int
    rows: int  # weights of all steps are kept, or those of two
    steps: int
    gap_rows: int  # gaps of all steps are kept for the gradient in the temperature, or none


def size(layout: Layout, n: int, itemsize: int) -> int:
    """Numbers that a row takes."""
    parts = (2 + layout.rows + layout.gap_rows) * layout.room + COLUMNS * layout.steps
    return HEADER + MOST_NODES + parts + (n * itemsize + 7) // 8


@view
def sizes(state):
    """Numbers of near items and of nodes."""
    return int(state[NEAR]), int(state[LENGTH])


@view
def index(state, layout):
    """Indices (room,) of the near items."""
    return state[HEADER : HEADER + layout.room].view(np.int64)


@view
def keys(state, layout):
    """Keys (room,) of the near items."""
    start = HEADER + layout.room
    return state[start : start + layout.room]


@view
def many(state, layout):
    """How many items each node stands for, (length,)."""
    start = HEADER + 2 * layout.room
    return state[start : start + int(state[LENGTH])]


@view
def weights(state, layout):
    """Weights (rows, room) of the steps."""
    start = HEADER + 2 * layout.room + MOST_NODES
    return state[start : start + layout.rows * layout.room].reshape(layout.rows, layout.room)


@view
def record(state, layout):
    """Records (steps, COLUMNS) of the steps."""
    start = HEADER + 2 * layout.room + MOST_NODES + layout.rows * layout.room
    return state[start : start + layout.steps * COLUMNS].reshape(layout.steps, COLUMNS)


@view
def gaps(state, layout):
    """How far each item lies below the largest, (gap_rows, room), less where it started."""
    start = HEADER + 2 * layout.room + MOST_NODES + layout.rows * layout.room + layout.steps * COLUMNS
    return state[start : start + layout.gap_rows * layout.room].reshape(layout.gap_rows, layout.room)


@view
def u(state, layout, like):
    """u (n,) of the far items, in the dtype of an array `like` (n,)."""
    numbers = (like.shape[0] * like.itemsize + 7) // 8
    start = state.shape[0] - numbers
    return state[start:].view(like.dtype)[: like.shape[0]]
