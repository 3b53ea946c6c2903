"""Subsets as `torch.distributions`: the exact laws p(S_wrs|w) and p(S|w), and their relaxed samples."""

from khot.distributions.ordered_subset import OrderedSubset
from khot.distributions.relaxed import RelaxedOrderedSubset, RelaxedSubset
from khot.distributions.subset import Subset

__all__ = ["OrderedSubset", "RelaxedOrderedSubset", "RelaxedSubset", "Subset"]
