"""Constraints: which logits and which values a subset distribution accepts."""

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint


class _LogWeights(Constraint):
    """Log-weights (..., n): finite, or -inf for an absent item."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value < torch.inf).all(-1)


class _WithParameters(Constraint):
    """Constraint whose repr shows its parameters."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class KHot(_WithParameters):
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

    is_discrete = True
    event_dim = 1

    def __init__(self, k: int) -> None:
        self.k = k

    def check(self, value: Tensor) -> Tensor:
        """Whether each vector (..., n) is k-hot, (...)."""
        return ((value == 0) | (value == 1)).all(-1) & (value.double().sum(-1) == self.k)


class DistinctIndices(_WithParameters):
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

    is_discrete = True
    event_dim = 1

    def __init__(self, n: int) -> None:
        self.n = n

    def check(self, value: Tensor) -> Tensor:
        """Whether each sequence (..., k) is one of different items, (...)."""
        value = value.double()  # a narrow integer type would overflow in the comparison with n
        ascending = value.sort(-1).values
        different = (ascending[..., 1:] != ascending[..., :-1]).all(-1)
        return different & ((value >= 0) & (value < self.n) & (value % 1 == 0)).all(-1)


class RelaxedKHot(_WithParameters):
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

    event_dim = 1

    def __init__(self, k: int) -> None:
        self.k = k

    def check(self, value: Tensor) -> Tensor:
        """Whether each vector (..., n) is non-negative and sums to k, (...)."""
        slack = 4 * torch.finfo(value.dtype).eps * max(1, self.k)
        return (value >= 0).all(-1) & ((value.double().sum(-1) - self.k).abs() <= slack)


log_weights: Constraint = _LogWeights()
