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

PRECISION_STEPS = 100
"""Of the search for the precision of a row, far more than it takes."""

LARGEST_PRECISION, LONGEST_PRECISION_STEP = 50.0, 2.0
"""Logarithms: of a precision, for distances in units of their mean in a row, and of a step of the search."""

ENTROPY_TOLERANCE, ENTROPY_FLAT = 1e-5, 1e-10
"""Error of the entropy at which the search ends, and a slope of the entropy that leads nowhere."""
