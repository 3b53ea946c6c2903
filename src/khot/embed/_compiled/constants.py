"""Constants of the search for the precision at which the neighbours of a row have a given perplexity."""

PRECISION_STEPS = 100
"""Most steps of a search, far more than are needed."""

LARGEST_PRECISION, LONGEST_PRECISION_STEP = 50.0, 2.0
"""Bounds of the logarithm of a precision, for distances in units of their mean, and of a step of the search."""

ENTROPY_TOLERANCE, ENTROPY_FLAT = 1e-5, 1e-10
"""Error of the entropy at which the search ends, and the smallest slope that a step divides by."""
