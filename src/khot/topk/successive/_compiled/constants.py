"""What the compiled loops and the same in torch operations must agree on. Without Numba."""

SUM, VECTORS, ENTRIES = 0, 1, 2
"""What can be asked for: the k-hot vector, the k vectors apart, their entries at given items."""

COLD = 0.5
"""Below this temperature the recursion amplifies errors."""

COLDEST, WIDEST = 0.05, 50.0
"""Accuracy is promised down to this temperature and, where errors grow, up to this range of the keys."""

PROMISE, PROMISE_NARROW = 5e-13, 1e-11
"""Error up to which a float64 result and its gradient can be trusted, and one that is rounded further."""

LARGEST = 1e200
"""Cotangents saturate here: times n it is still far from overflow."""
