"""Nodes that represent all far items of a row.

A far item with u = exp((key - threshold) / t), 0 < u <= 1, has the weight u phi(u) before each step, where phi is the
same very smooth function for all far items. So phi is computed only at D Chebyshev nodes of [0, 1], as if there were
an item at each node, and interpolated. Values at the nodes become coefficients of a polynomial in u by
`coefficients`; sums of u, u^2, ... over the far items (moments) become the number of items that each node stands
for by the adjoint map. Both go over Chebyshev coefficients, which keeps all digits.
"""

import numpy as np

LENGTHS = (4, 8)


def nodes(length: int) -> np.ndarray:
    """Chebyshev nodes u of [0, 1], the largest first."""
    return (1 + np.cos(np.pi * (np.arange(length) + 0.5) / length)) / 2


def to_chebyshev(length: int) -> np.ndarray:
    """Matrix from values at the nodes to coefficients of the Chebyshev polynomials T_m(2u - 1)."""
    degrees = np.arange(length)[:, None]
    scale = np.where(degrees == 0, 1, 2) / length
    return scale * np.cos(degrees * np.pi * (np.arange(length) + 0.5) / length)


def chebyshev_in_powers(length: int) -> np.ndarray:
    """Coefficients of T_m(2u - 1) in powers of u, one row each; whole numbers."""
    table = np.zeros((length, length))
    table[0, 0] = 1
    table[1, :2] = -1, 2
    for m in range(2, length):
        table[m] = -2 * table[m - 1] - table[m - 2]
        table[m, 1:] += 4 * table[m - 1, :-1]
    return table
