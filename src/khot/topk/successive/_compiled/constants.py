"""What the compiled loops and the operator must agree on. Without Numba."""

SUM, VECTORS, ENTRIES = 0, 1, 2
"""What can be asked for: the k-hot vector, the k vectors apart, their entries at given items."""

BAD, EMPTY, SHORT, NODES, ALL, PRECISE = range(6)
"""Paths that a row can take: it is refused, k is 0, fewer than k items are present, or it went through the recursion
with nodes for the far items, with all items near, or with 32 digits."""

OPEN, TRUNCATED, INEXACT = -1, -2, -3
"""Where a row stands before it has taken a path: not solved yet; the nodes do not stand for the far items; rounding
errors may have grown too large."""

COLD = 0.5
"""Below this temperature the recursion amplifies errors."""

COLDEST, WIDEST = 0.05, 50.0
"""Accuracy is promised down to this temperature and, where errors grow, up to this range of the keys."""

LARGEST = 1e200
"""Cotangents saturate here: times n it is still far from overflow."""
