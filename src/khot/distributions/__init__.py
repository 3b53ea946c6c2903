"""Subset distributions in the style of `torch.distributions`.

`OrderedSubset` and `Subset` are discrete, with exact probabilities; `RelaxedOrderedSubset` and `RelaxedSubset` have
reparameterised samples and no density. `Subset` is Gumbel top-k (successive sampling, Plackett-Luce without its order),
the distribution of the paper. It is not conditional Poisson sampling, where p(S) is proportional to the product of the
weights in S.
"""

from khot.distributions.ordered_subset import OrderedSubset
from khot.distributions.relaxed import RelaxedOrderedSubset, RelaxedSubset
from khot.distributions.subset import Subset

__all__ = ["OrderedSubset", "RelaxedOrderedSubset", "RelaxedSubset", "Subset"]
