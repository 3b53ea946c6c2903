"""Constraints: which logits and which values a subset distribution accepts."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint

from khot import _checks


class _LogWeights(Constraint):
    """Log-weights (..., n): finite, or -inf for an absent item."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return _checks.usable(value)


@dataclass(frozen=True)
class KHot(Constraint):
    """Vectors of k ones and n - k zeros.

    Parameters
    ----------
    k : int
        Number of ones.

    Examples
    --------
    >>> import torch
    >>> KHot(2).check(torch.tensor([[1, 1, 0], [1, 0, 0]]))
    tensor([ True, False])
    """

    k: int
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Whether each vector (..., n) is k-hot, (...)."""
        return ((value == 0) | (value == 1)).all(-1) & (value.double().sum(-1) == self.k)


@dataclass(frozen=True)
class DistinctIndices(Constraint):
    """Sequences of different whole numbers in 0..n-1.

    Parameters
    ----------
    n : int
        Number of items.

    Examples
    --------
    >>> import torch
    >>> DistinctIndices(3).check(torch.tensor([[2, 0], [1, 1], [0, 3]]))
    tensor([ True, False, False])
    """

    n: int
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Whether each sequence (..., k) is one of different items, (...)."""
        value = value.double()  # a narrow integer type would overflow in the comparison with n
        ascending = value.sort(-1).values
        different = (ascending[..., 1:] != ascending[..., :-1]).all(-1)
        return different & ((value >= 0) & (value < self.n) & (value % 1 == 0)).all(-1)


@dataclass(frozen=True)
class RelaxedKHot(Constraint):
    """Non-negative vectors that sum to k, up to rounding.

    Parameters
    ----------
    k : int
        The sum.

    Examples
    --------
    >>> import torch
    >>> RelaxedKHot(2).check(torch.tensor([[0.5, 0.7, 0.8], [0.5, 0.7, 0.7]]))
    tensor([ True, False])
    """

    k: int
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Whether each vector (..., n) is non-negative and sums to k, (...)."""
        slack = 4 * torch.finfo(value.dtype).eps * max(1, self.k)
        return (value >= 0).all(-1) & ((value.double().sum(-1) - self.k).abs() <= slack)


log_weights: Constraint = _LogWeights()
