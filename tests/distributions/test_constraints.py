import pytest
import torch

from khot.distributions import constraints


def test_log_weights():
    rows = torch.tensor([[0.0, -torch.inf], [0.0, torch.inf], [0.0, torch.nan]])
    assert constraints.log_weights.check(rows).tolist() == [True, False, False]


def test_k_hot():
    rows = torch.tensor([[1.0, 1, 0], [1, 0, 0], [1, 1, 1], [2, 0, 0], [0.5, 0.5, 1]])
    assert constraints.KHot(2).check(rows).tolist() == [True, False, False, False, False]


def test_distinct_indices():
    rows = torch.tensor([[0.0, 2], [1, 1], [0, 3], [-1, 0], [0.5, 1]])
    assert constraints.DistinctIndices(3).check(rows).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_relaxed_k_hot(dtype: torch.dtype):
    k, n = 50, 1000
    good = torch.full((n,), k / n, dtype=dtype)
    bad = torch.stack(
        [torch.zeros(n), torch.full((n,), 1.1 * k / n), good.double().index_fill(0, torch.tensor([0]), -0.01)]
    )
    assert constraints.RelaxedKHot(k).check(good)
    assert not constraints.RelaxedKHot(k).check(bad.to(dtype)).any()
