"""Constants of the search for the precision at which the neighbours of a row have a given perplexity."""

PRECISION_STEPS = 100
"""Of the search for the precision of a row, far more than it takes."""

LARGEST_PRECISION, LONGEST_PRECISION_STEP = 50.0, 2.0
"""Logarithms: of a precision, for distances in units of their mean in a row, and of a step of the search."""

ENTROPY_TOLERANCE, ENTROPY_FLAT = 1e-5, 1e-10
"""Error of the entropy at which the search ends, and a slope of the entropy that leads nowhere."""
