"""Squared Euclidean distances by one matrix product, which loses digits where points are near each other."""

import torch
from torch import Tensor

_NOISE = 2.0**-46  # relative to the squares of the points: smaller squared distances in float64 are rounding errors


def squared_distances(left: Tensor, right: Tensor) -> Tensor:
    """Squared distances (n, m) of rows (n, d) to rows (m, d), at least in float32. Rounding may make some negative.

    >>> squared_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[ 1., 25.]])
    """
    left, right = (points.to(torch.promote_types(points.dtype, torch.float32)) for points in (left, right))
    centre = right.detach().mean(0)  # cancellation is smaller near the origin
    left, right = left - centre, right - centre
    squares = left.square().sum(1, keepdim=True) + right.square().sum(1)
    return torch.addmm(squares, left, right.T, alpha=-2)


def careful_distances(left: Tensor, right: Tensor, right_squares: Tensor) -> Tensor:
    """Squared distances (n, m) of rows in float64 with a mean near 0. Equal rows have distance 0.

    `right_squares` (m,) are the squared lengths of `right`, which can be reused for many tables.

    >>> rows = torch.tensor([[0.1, 0.7], [0.1, -0.3]]).double()
    >>> careful_distances(rows[:1], rows, rows.square().sum(1))
    tensor([[0., 1.]], dtype=torch.float64)
    """
    squares = left.square().sum(1, keepdim=True) + right_squares
    distances = torch.addmm(squares, left, right.T, alpha=-2)
    return distances.masked_fill_(distances < _NOISE * squares, 0)
