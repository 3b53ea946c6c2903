"""p(S|w): the law of the set of the k items, whatever their order, with exact probabilities."""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Size, Tensor
from torch.distributions import constraints as torch_constraints
from torch.distributions import register_kl

from khot.distributions import constraints
from khot.distributions._enumeration import ListedDistribution, kl_by_listing
from khot.distributions._inclusion import inclusion_probabilities
from khot.distributions._race import log_win_probability
from khot.topk import hard_topk


class Subset(ListedDistribution):
    """Distribution of the set of k items drawn without replacement with probabilities proportional to weight.

    ``p(S) = sum over the orders of S of p(i_1, ..., i_k)``, the latter being `OrderedSubset`'s. It is *not* the law
    with p(S) proportional to the product of the weights (conditional Poisson sampling), which often goes by its name.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights, not necessarily normalised; -inf marks an absent item. Every row needs at least k present items.
    k : int
        Size of the subset, 0 <= k <= n.
    validate_args : bool, optional
        As in `torch.distributions`.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf logits, a bad k, or too few present items.

    Examples
    --------
    >>> import torch
    >>> law = Subset(torch.tensor([0.1, 0.2, 0.3, 0.4]).log(), 2)
    >>> law.log_prob(torch.tensor([0.0, 0.0, 1.0, 1.0])).exp()  # 0.3 * 0.4 / 0.7 + 0.4 * 0.3 / 0.6
    tensor(0.3714)
    >>> law.inclusion_probs
    tensor([0.2345, 0.4413, 0.6083, 0.7159])

    Notes
    -----
    `log_prob` integrates over one variable with some sixty nodes instead of summing k! orders: O(n + 60 k), relative
    error about 1e-12 in the probability. `inclusion_probs` costs O(60 n k) with a step of Python for each item: tenths
    of a second a row for n = 1000, k = 50 with its gradient. Its error is about 1e-12, in absolute terms. Both work in
    float64 and return the dtype of the logits: pass float32 or better for ratios of probabilities.

    References
    ----------
    Xie & Ermon, 2019, eq. 2.
    """

    _event = ("n",)
    _count = staticmethod(math.comb)
    _list = staticmethod(itertools.combinations)

    @torch_constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.KHot(self.k)

    @property
    def inclusion_probs(self) -> Tensor:
        """Probability of each item to be in the subset, (..., n); sums to k; differentiable in the logits."""
        present = self.logits > -torch.inf
        if self.k in (0, self.n) or self.logits.numel() == 0:
            return self.logits.clamp(0, 0) + self.k / self.n
        forced = (present.sum(-1) == self.k).unsqueeze(-1)
        logits = torch.where(forced, 0, self.logits.double()).reshape(-1, self.n)
        probs = inclusion_probabilities(logits, self.k).reshape(self.logits.shape)
        return torch.where(forced, present.double(), probs).to(self.logits.dtype)

    @property
    def mean(self) -> Tensor:
        """The inclusion probabilities."""
        return self.inclusion_probs

    @property
    def variance(self) -> Tensor:
        """Variance of each entry of the k-hot vector."""
        probs = self.inclusion_probs
        return probs * (1 - probs)

    @property
    def mode(self) -> Tensor:
        """The most probable subset: the k largest logits."""
        return hard_topk(self.logits, self.k)

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Exact k-hot samples (*sample_shape, ..., n)."""
        with torch.no_grad():
            return hard_topk(self._keys(sample_shape, generator), self.k).to(self.logits.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of k-hot vectors (..., n), differentiable in the logits."""
        self._check_sample(value, self.support, self.n, f"k-hot vectors with {self.k} ones among {self.n} entries")
        return self._log_prob(value.to(self.logits.dtype).topk(self.k, dim=-1).indices)

    def log_prob_indices(self, indices: Tensor) -> Tensor:
        """Log-probability of subsets given by their indices (..., k) in any order."""
        support = constraints.DistinctIndices(self.n)
        self._check_sample(indices, support, self.k, f"{self.k} different indices below {self.n}")
        return self._log_prob(indices.long())

    def _log_prob(self, chosen: Tensor) -> Tensor:
        batch_shape = Size(torch.broadcast_shapes(chosen.shape[:-1], self.batch_shape))
        chosen = chosen.sort(-1).values.expand(*batch_shape, self.k)  # so that the order plays no part, to the last bit
        logits = self.logits.double().expand(*batch_shape, self.n)
        members = logits.gather(-1, chosen)
        rest = logits.scatter(-1, chosen, -torch.inf)
        impossible = (members == -torch.inf).any(-1)
        certain = ((rest == -torch.inf).all(-1) | (self.k == 0)) & ~impossible
        settled = (impossible | certain).unsqueeze(-1)
        members, rest = members.masked_fill(settled, 0), rest.masked_fill(settled, 0)
        origin = rest.detach().amax(-1, keepdim=True)  # so that a common offset costs no digits
        lead = (members - origin) - (rest - origin).logsumexp(-1, keepdim=True)
        log_p = log_win_probability(lead.reshape(batch_shape.numel(), self.k)).reshape(batch_shape)
        log_p = log_p.masked_fill(certain, 0).masked_fill(impossible, -torch.inf)
        return log_p.clamp_max(0).to(self.logits.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All C(n, k) k-hot vectors, (support, ..., n); raises `NotAvailableError` if they are too many."""
        indices = self._all_indices("enumerate_support")
        return self._in_batches(self.logits.new_zeros(len(indices), self.n).scatter(-1, indices, 1), expand)


@register_kl(Subset, Subset)
def _kl(p: Subset, q: Subset) -> Tensor:
    return kl_by_listing(p, q)
