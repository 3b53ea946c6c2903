"""The distribution of k items in the order in which they are drawn, p(S_wrs|w) of the paper."""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import constraints as torch_constraints
from torch.distributions import register_kl

from khot.distributions import constraints
from khot.distributions._discrete import DiscreteSubsetDistribution, kl_by_enumeration
from khot.topk import topk_indices


class OrderedSubset(DiscreteSubsetDistribution):
    """Distribution of sequences of k items, drawn one by one with probabilities proportional to their weights.

    With w = exp(logits) and Z their sum (Plackett-Luce, also called successive sampling)::

        p(i_1, ..., i_k) = product over j of  w_(i_j) / (Z - w_(i_1) - ... - w_(i_(j-1)))

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        Log-weights, not necessarily normalised; -inf marks an absent item. Every row needs at least k present items.
    k : int
        Length of the sequence, 0 <= k <= n.
    validate_args : bool, optional
        Whether `log_prob` checks its values, as in `torch.distributions`; by default yes, unless Python runs with -O.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf logits, a k outside 0..n or not an int, or too few present items.

    See Also
    --------
    Subset : the distribution of the same items regardless of their order.
    khot.sample_subset : with ``hard=True, ordered=True``, samples as one-hot vectors; ``argmax(-1)`` gives the indices.

    Examples
    --------
    >>> import torch
    >>> from khot import OrderedSubset
    >>> d = OrderedSubset(torch.tensor([0.1, 0.2, 0.3, 0.4]).log(), 2)
    >>> d.log_prob(torch.tensor([3, 0])).exp()  # 0.4 / 1 * 0.1 / 0.6
    tensor(0.0667)
    >>> d.mode
    tensor([3, 2])
    >>> d.sample((5,)).shape
    torch.Size([5, 2])

    Notes
    -----
    `log_prob` costs O(n) for each value. It computes in float64 without a subtraction of weights, so that nothing
    cancels, and returns the dtype of the logits.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, eq. 1.
    """

    _event_axes = ("k",)
    _count = staticmethod(math.perm)
    _tuples = staticmethod(itertools.permutations)

    @torch_constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sequences of different items."""
        return constraints.DistinctIndices(self.n)

    @property
    def mode(self) -> Tensor:
        """The most probable sequence, (..., k): the k largest logits in descending order."""
        return topk_indices(self.logits, self.k)

    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw sequences.

        Parameters
        ----------
        sample_shape : sequence of int
            Shape of independent samples.
        generator : torch.Generator, optional
            Source of the noise; torch's default generator if not given.

        Returns
        -------
        Tensor of int64, shape (*sample_shape, ..., k)
            Indices in the order in which they were drawn.
        """
        with torch.no_grad():
            return topk_indices(self._keys(sample_shape, generator), self.k)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of sequences.

        Parameters
        ----------
        value : Tensor, shape (..., k)
            Different items in 0..n-1, in the order in which they are drawn.

        Returns
        -------
        Tensor, shape (...)
            Differentiable in the logits; -inf, with zero gradient, for a sequence with an absent item.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a value is not such a sequence, unless ``validate_args=False``.
        """
        self._check_indices(value)
        # log p = sum over j of x_(i_j) - log(R + w_(i_j) + ... + w_(i_k)), where R is the weight of the items not
        # drawn: the remaining weights are running sums from the last draw back to the first.
        drawn, rest, impossible = self._divide(value.long())
        no_rest = (rest == -torch.inf).all(-1, keepdim=True)
        lowest = torch.finfo(torch.float64).min  # stands for log 0, whose gradient would be NaN
        log_rest = rest.masked_fill(no_rest, lowest).logsumexp(-1, keepdim=True).masked_fill(no_rest, lowest)
        log_remaining = torch.cat([log_rest, drawn.flip(-1)], -1).logcumsumexp(-1)[..., 1:].flip(-1)
        return (drawn - log_remaining).sum(-1).masked_fill(impossible, -torch.inf).to(self.logits.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All n! / (n - k)! sequences.

        Parameters
        ----------
        expand : bool
            Whether to expand the batch axes to their lengths; otherwise they have length 1.

        Returns
        -------
        Tensor of int64, shape (support, ..., k)

        Raises
        ------
        NotAvailableError
            If there are more than 200,000 sequences over all batch rows.
        """
        return self._in_batches(self._all_indices("enumerate_support"), expand)


register_kl(OrderedSubset, OrderedSubset)(kl_by_enumeration)
