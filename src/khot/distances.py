"""Squared Euclidean distances by one matrix product."""

import torch
from torch import Tensor


def squared_distances(left: Tensor, right: Tensor) -> Tensor:
    """Squared distances (n, m) of rows (n, d) to rows (m, d), at least in float32; rounding may leave some below 0.

    >>> squared_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[ 1., 25.]])
    """
    left, right = (points.to(torch.promote_types(points.dtype, torch.float32)) for points in (left, right))
    centre = right.detach().mean(0)  # near the origin the squares below cancel less
    left, right = left - centre, right - centre
    squares = left.square().sum(1, keepdim=True) + right.square().sum(1)
    return torch.addmm(squares, left, right.T, alpha=-2)
