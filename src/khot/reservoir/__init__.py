"""Weighted sampling of streams without replacement: the same sample for a seed, however the rows are divided."""

from khot.reservoir.indices import sample_indices
from khot.reservoir.reservoir import Reservoir, Total

__all__ = ["Reservoir", "Total", "sample_indices"]
