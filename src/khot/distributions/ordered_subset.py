"""p(S_wrs|w): the law of k items drawn in order, without replacement (Plackett-Luce, successive sampling)."""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import constraints as torch_constraints
from torch.distributions import register_kl

from khot.distributions import constraints
from khot.distributions._enumeration import ListedDistribution, kl_by_listing
from khot.topk import topk_indices


class OrderedSubset(ListedDistribution):
    """Distribution of the sequence of k items drawn one after the other with probabilities proportional to weight.

    ``p(i_1, ..., i_k) = prod_j w_(i_j) / (Z - w_(i_1) - ... - w_(i_(j-1)))`` with w = exp(logits), Z their sum.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights, not necessarily normalised; -inf marks an absent item. Every row needs at least k present items.
    k : int
        Length of the sequence, 0 <= k <= n.
    validate_args : bool, optional
        As in `torch.distributions`.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf logits, a bad k, or too few present items.

    See Also
    --------
    sample_subset : its one-hot vectors (``hard=True, ordered=True``) become indices by ``argmax(-1)``.

    Examples
    --------
    >>> import torch
    >>> law = OrderedSubset(torch.tensor([0.1, 0.2, 0.3, 0.4]).log(), 2)
    >>> law.log_prob(torch.tensor([3, 0])).exp()  # 0.4 / 1 * 0.1 / 0.6
    tensor(0.0667)

    References
    ----------
    Xie & Ermon, 2019, eq. 1.
    """

    _event = ("k",)
    _count = staticmethod(math.perm)
    _list = staticmethod(itertools.permutations)

    @torch_constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.DistinctIndices(self.n)

    @property
    def mode(self) -> Tensor:
        """The most probable sequence: the k largest logits, in descending order."""
        return topk_indices(self.logits, self.k)

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Indices (*sample_shape, ..., k) in the order they were drawn."""
        with torch.no_grad():
            return topk_indices(self._keys(sample_shape, generator), self.k)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of sequences of indices (..., k), differentiable in the logits."""
        self._check_sample(value, self.support, self.k, f"{self.k} different indices below {self.n}")
        batch_shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        logits = self.logits.double().expand(*batch_shape, self.n)
        chosen = value.long().expand(*batch_shape, self.k)
        drawn = logits.gather(-1, chosen)
        impossible = (drawn == -torch.inf).any(-1)
        # The weight still there at draw j is that of draws j..k and of the rest: running sums, no subtraction.
        rest = logits.scatter(-1, chosen, -torch.inf)
        rest = rest.masked_fill(impossible.unsqueeze(-1), 0)
        drawn = drawn.masked_fill(impossible.unsqueeze(-1), 0)
        none_left = (rest == -torch.inf).all(-1, keepdim=True)
        lowest = torch.finfo(torch.float64).min
        log_rest = rest.masked_fill(none_left, lowest).logsumexp(-1, keepdim=True).masked_fill(none_left, lowest)
        there = torch.cat([log_rest, drawn.flip(-1)], -1).logcumsumexp(-1)[..., 1:].flip(-1)
        return (drawn - there).sum(-1).masked_fill(impossible, -torch.inf).to(self.logits.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All n! / (n - k)! sequences, (support, ..., k); raises `NotAvailableError` if they are too many."""
        return self._in_batches(self._all_indices("enumerate_support"), expand)


@register_kl(OrderedSubset, OrderedSubset)
def _kl(p: OrderedSubset, q: OrderedSubset) -> Tensor:
    return kl_by_listing(p, q)
