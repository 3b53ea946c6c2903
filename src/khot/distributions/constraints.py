"""Where the parameters and the samples of the subset distributions live."""

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint


class _Named(Constraint):
    """A constraint that prints with its parameters."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class _LogWeights(Constraint):
    """Rows of log-weights: finite, or -inf for an absent item."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value < torch.inf).all(-1)


class KHot(_Named):
    """Vectors of k ones and n - k zeros."""

    is_discrete = True
    event_dim = 1

    def __init__(self, k: int) -> None:
        self.k = k

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.double().sum(-1) == self.k)


class DistinctIndices(_Named):
    """Sequences of different indices below n."""

    is_discrete = True
    event_dim = 1

    def __init__(self, n: int) -> None:
        self.n = n

    def check(self, value: Tensor) -> Tensor:
        value = value.double()  # a narrow integer type would wrap in the comparison with n
        ascending = value.sort(-1).values
        different = (ascending[..., 1:] != ascending[..., :-1]).all(-1)
        return different & ((value >= 0) & (value < self.n) & (value % 1 == 0)).all(-1)


class RelaxedKHot(_Named):
    """Non-negative vectors that sum to k (up to rounding)."""

    event_dim = 1

    def __init__(self, k: int) -> None:
        self.k = k

    def check(self, value: Tensor) -> Tensor:
        slack = 4 * torch.finfo(value.dtype).eps * max(1, self.k)
        return (value >= 0).all(-1) & ((value.double().sum(-1) - self.k).abs() <= slack)


log_weights = _LogWeights()
