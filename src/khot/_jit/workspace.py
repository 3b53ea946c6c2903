"""Memory for the many small arrays that the work on one row needs, taken from one block, which the next row uses again.

The block is a flat array of float64, and its first number tells how much of it is taken. An allocation of its own costs
more than many a loop over a short array.
"""

import numpy as np

from khot._jit.compiler import allocates, fma


@allocates
def numbers(scratch, size):
    """An array of `size` numbers, not initialised; of its own where the block has no room left."""
    start = int(scratch[0])
    if start + size > scratch.shape[0]:
        return np.empty(size)
    scratch[0] = start + size
    return scratch[start : start + size]


@allocates
def zeros(scratch, size):
    """The same, zero."""
    result = numbers(scratch, size)
    for i in range(size):
        result[i] = 0.0
    return result


@allocates
def table(scratch, rows, size):
    """The same, as a table."""
    return numbers(scratch, rows * size).reshape(rows, size)


@fma
def clear(scratch):
    """Give everything back."""
    scratch[0] = 1.0
