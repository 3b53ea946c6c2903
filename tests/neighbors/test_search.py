"""The exact search against brute force."""

import numpy as np
import pytest
import torch

from khot.errors import InvalidValueError
from khot.neighbors import nearest, votes


def brute_force(queries, references, k):
    """Everything in float64, a stable sort of all distances as float32."""
    q, r = queries.numpy().astype(np.float64), references.numpy().astype(np.float64)
    distances = np.sqrt(((q[:, None] - r[None]) ** 2).sum(-1)).astype(np.float32)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, 1), order


def points(rows: int, columns: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def assert_exact(queries, references, k, **options):
    distances, indices = nearest(queries, references, k, **options)
    expected, order = brute_force(queries, references, k)
    assert distances.dtype == torch.float32
    assert np.array_equal(indices.numpy(), order)
    assert np.allclose(distances.numpy(), expected, rtol=2e-7, atol=0)


@pytest.mark.parametrize("memory", [1, 10_000, 2**28])
@pytest.mark.parametrize(("rows", "k"), [(1, 1), (5, 5), (30, 9), (300, 3), (300, 300)])
def test_random_points(rows: int, k: int, memory: int):
    assert_exact(points(20, 7, seed=1), points(rows, 7, seed=2), k, memory=memory)


@pytest.mark.parametrize("memory", [5_000, 2**28])
def test_ties_go_to_the_smaller_index(memory: int):
    """Points of a grid, each many times over: more copies than the search keeps in addition to the k nearest."""
    grid = torch.cartesian_prod(torch.arange(3.0), torch.arange(3.0))
    references = grid.repeat(40, 1)[torch.randperm(360, generator=torch.Generator().manual_seed(0))]
    assert_exact(torch.cat([grid, grid + 0.5]), references, 9, memory=memory)


def test_all_references_equal():
    _, indices = nearest(torch.zeros(2, 3), torch.ones(100, 3), 4)
    assert indices.tolist() == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_far_from_the_origin(offset: float):
    """There |a|² + |b|² - 2ab in float32 has no right digit left."""
    assert_exact(points(20, 5, seed=1) + offset, points(500, 5, seed=2) + offset, 9)


def test_two_clouds_far_apart():
    """No shift brings both near the origin."""
    references = torch.cat([points(200, 5, seed=2) * 1e-3 + 1e4, points(200, 5, seed=3) * 1e-3 - 1e4])
    assert_exact(references[::10] + 1e-4, references, 9)


def test_memory_is_bounded():
    """No table has more than the bytes allowed."""
    sizes, queries, references = [], points(500, 4, seed=1), points(3000, 4, seed=2)

    class Recorder(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                sizes.append(result.numel() * result.element_size())
            return result

    with Recorder():
        nearest(queries, references, 5, memory=2**17)
    assert 2**14 < max(sizes) <= 2**17


def test_more_neighbours_than_references():
    with pytest.raises(InvalidValueError, match="at most the number of references, 3, but got 4"):
        nearest(torch.zeros(1, 2), torch.zeros(3, 2), 4)


def test_equal_votes_go_to_the_nearest_then_the_smallest():
    distances = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert votes.winners(np.array([[2, 1, 1, 2]]), distances, 3) == [2]
    assert votes.winners(np.array([[2, 1, 1, 0]]), distances, 3) == [1]
    assert votes.winners(np.array([[2, 1, 1, 2]]), np.array([[1.0, 1.0, 1.0, 4.0]]), 3) == [1]
    assert votes.shares(np.array([[2, 1, 1, 2]]), 3).tolist() == [[0, 0.5, 0.5]]


def test_huge_and_bad_features():
    references = torch.rand(50, 2, generator=torch.Generator().manual_seed(0))
    distances, indices = nearest(torch.full((1, 2), 1e20), references, 2)
    assert distances.isfinite().all()
    assert indices.tolist() == [[0, 1]]  # all are as far
    for bad in (float("nan"), float("inf")):
        spoilt = torch.cat([references, torch.full((1, 2), bad)])
        for queries, others in ((references, spoilt), (spoilt, references)):
            with pytest.raises(InvalidValueError, match="must be finite"):
                nearest(queries, others, 1)
    for queries in (references[0], references[:, :1], references[:, :0]):
        with pytest.raises(InvalidValueError):
            nearest(queries, references, 1)


@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
def test_distances_of_float64_are_not_rounded(unit: float):
    references = unit * torch.tensor([[1 + 1e-9], [3.0], [1.0]], dtype=torch.float64)
    distances, indices = nearest(torch.zeros(1, 1, dtype=torch.float64), references, 3)
    assert indices.tolist() == [[2, 0, 1]]
    assert torch.equal(distances[0], references[indices[0], 0])


def test_copies_whose_distances_nearly_vanish():
    references = torch.full((40, 3), 1e-45)
    assert nearest(torch.zeros(1, 3), references, 2)[1].tolist() == [[0, 1]]
