"""The distribution of the set of k drawn items regardless of their order, p(S|w) of the paper, in closed form."""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import constraints as torch_constraints
from torch.distributions import register_kl

from khot.distributions import constraints
from khot.distributions._discrete import DiscreteSubsetDistribution, kl_by_enumeration
from khot.distributions._inclusion import inclusion_probabilities
from khot.distributions._race import log_win_probability
from khot.topk import hard_topk


class Subset(DiscreteSubsetDistribution):
    """Distribution of sets of k items, drawn without replacement with probabilities proportional to their weights.

    With w = exp(logits) and Z their sum::

        p(S) = sum over the k! orders (i_1, ..., i_k) of S of
               product over j of  w_(i_j) / (Z - w_(i_1) - ... - w_(i_(j-1)))

    It is *not* conditional Poisson sampling, where p(S) is proportional to the product of the weights in S; published
    code often confuses the two.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights, not necessarily normalised; -inf marks an absent item. Every row needs at least k present items.
    k : int
        Size of the subset, 0 <= k <= n.
    validate_args : bool, optional
        Whether `log_prob` checks its values, as in `torch.distributions`; by default yes, unless Python runs with -O.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf logits, a k outside 0..n or not an int, or too few present items.

    See Also
    --------
    OrderedSubset : the distribution of the same items in their order.
    RelaxedSubset : its continuous relaxation, with reparameterised samples.

    Examples
    --------
    >>> import torch
    >>> from khot import Subset
    >>> d = Subset(torch.tensor([0.1, 0.2, 0.3, 0.4]).log(), 2)
    >>> d.log_prob(torch.tensor([0.0, 0.0, 1.0, 1.0])).exp()  # 0.3 * 0.4 / 0.7 + 0.4 * 0.3 / 0.6
    tensor(0.3714)
    >>> d.inclusion_probs
    tensor([0.2345, 0.4413, 0.6083, 0.7159])
    >>> d.sample((5,)).shape
    torch.Size([5, 4])

    Notes
    -----
    `log_prob` integrates over one variable with about sixty nodes instead of summing k! orders. It costs O(n + 60 k),
    and its relative error in the probability is about 1e-12.

    `inclusion_probs` costs O(60 n k), with a Python loop over the items: tenths of a second for a row of n = 1000,
    k = 50 with its gradient. Its absolute error is about 1e-12.

    Both compute in float64 and return the dtype of the logits. Half precision has too few digits for ratios of
    probabilities; pass float32 or float64.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, eq. 2.
    """

    _event_axes = ("n",)
    _count = staticmethod(math.comb)
    _tuples = staticmethod(itertools.combinations)

    @torch_constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Vectors of k ones and n - k zeros."""
        return constraints.KHot(self.k)

    @property
    def inclusion_probs(self) -> Tensor:
        """Probability of each item to be in the subset, (..., n).

        A row sums to k. It is differentiable once in the logits; a second derivative raises `NotAvailableError`.
        """
        present = self.logits > -torch.inf
        if self.k in (0, self.n) or self.logits.numel() == 0:
            return self.logits.clamp(0, 0) + self.k / self.n  # clamp(0, 0): zeros that still belong to the graph
        forced = (present.sum(-1) == self.k).unsqueeze(-1)  # rows where all present items are in
        logits = torch.where(forced, 0, self.logits.double()).reshape(-1, self.n)
        probs = inclusion_probabilities(logits, self.k).reshape(self.logits.shape)
        return torch.where(forced, present.double(), probs).to(self.logits.dtype)

    @property
    def mean(self) -> Tensor:
        """Mean of the k-hot vector, (..., n): the inclusion probabilities."""
        return self.inclusion_probs

    @property
    def variance(self) -> Tensor:
        """Variance of each entry of the k-hot vector, (..., n)."""
        probs = self.inclusion_probs
        return probs * (1 - probs)

    @property
    def mode(self) -> Tensor:
        """The most probable subset as a k-hot vector, (..., n): the k largest logits."""
        return hard_topk(self.logits, self.k)

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw exact samples.

        Parameters
        ----------
        sample_shape : sequence of int
            Shape of independent samples.
        generator : torch.Generator, optional
            Source of the noise; torch's default generator if not given.

        Returns
        -------
        Tensor, shape (*sample_shape, ..., n)
            k-hot vectors in the dtype of the logits, without a gradient.
        """
        with torch.no_grad():
            return hard_topk(self._keys(sample_shape, generator), self.k).to(self.logits.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of subsets given as k-hot vectors.

        Parameters
        ----------
        value : Tensor, shape (..., n)
            Vectors of k ones and n - k zeros.

        Returns
        -------
        Tensor, shape (...)
            Differentiable in the logits; -inf, with zero gradient, for a subset with an absent item.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a value is not such a vector, unless ``validate_args=False``.
        """
        self._check_value(
            value,
            self.support,
            self.n,
            f"k-hot vectors with {self.k} ones among {self.n} entries",
            "round a relaxed vector with khot.hard_topk, and give indices to log_prob_indices",
        )
        return self._log_prob(value.to(self.logits.dtype).topk(self.k, dim=-1).indices)

    def log_prob_indices(self, indices: Tensor) -> Tensor:
        """Log-probability of subsets given by the indices of their items.

        Parameters
        ----------
        indices : Tensor, shape (..., k)
            Different items in 0..n-1, in any order.

        Returns
        -------
        Tensor, shape (...)
            As `log_prob` returns it.
        """
        self._check_indices(indices)
        return self._log_prob(indices.long())

    def _log_prob(self, chosen: Tensor) -> Tensor:
        members, rest, impossible = self._divide(chosen.sort(-1).values)  # the order must not change the last bit
        certain = ((rest == -torch.inf).all(-1) | (self.k == 0)) & ~impossible  # everything else is absent
        settled = certain.unsqueeze(-1)  # nothing that is settled enters the integral
        members, rest = members.masked_fill(settled, 0), rest.masked_fill(settled, 0)
        # lead_i = log(w_i / W), where W is the total weight of the rest, measured from the largest logit of the rest
        # so that a common offset costs no digits.
        origin = rest.detach().amax(-1, keepdim=True)
        lead = (members - origin) - (rest - origin).logsumexp(-1, keepdim=True)
        log_p = log_win_probability(lead.reshape(certain.numel(), self.k)).reshape(certain.shape)
        log_p = log_p.masked_fill(certain, 0).masked_fill(impossible, -torch.inf)
        return log_p.clamp_max(0).to(self.logits.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All C(n, k) subsets as k-hot vectors.

        Parameters
        ----------
        expand : bool
            Whether to expand the batch axes to their lengths; otherwise they have length 1.

        Returns
        -------
        Tensor, shape (support, ..., n)

        Raises
        ------
        NotAvailableError
            If there are more than 200,000 subsets over all batch rows.
        """
        indices = self._all_indices("enumerate_support")
        return self._in_batches(self.logits.new_zeros(len(indices), self.n).scatter(-1, indices, 1), expand)


register_kl(Subset, Subset)(kl_by_enumeration)
