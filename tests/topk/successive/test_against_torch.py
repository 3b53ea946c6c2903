"""The compiled loops and the torch operations are two implementations of one algorithm: they agree."""

import pytest
import torch

import khot
from khot import _jit
from tests.problems import Problem, problems


@pytest.fixture
def choose():
    return lambda compiled: setattr(_jit, "AVAILABLE", compiled)  # put back after each test of this folder


def gradients(problem: Problem, cotangent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    keys = torch.from_numpy(problem.keys).requires_grad_()
    temperature = torch.tensor(problem.temperature, dtype=torch.float64, requires_grad=True)
    khot.successive_softmax(keys, problem.k, temperature).backward(cotangent)
    return keys.grad.double(), temperature.grad


@pytest.mark.parametrize("seed", range(3))
def test_gradients_agree_between_the_paths(seed: int, choose):
    for problem in problems(30, 100 + seed, longest=2000, most=2e4):
        cotangent = torch.randn(len(problem.keys), generator=torch.Generator().manual_seed(seed)).to(
            torch.from_numpy(problem.keys).dtype
        )
        choose(True)
        a, in_a = gradients(problem, cotangent)
        choose(False)
        b, in_b = gradients(problem, cotangent)
        assert a.isfinite().all()
        scale = max(a.abs().max().item(), 1e-10)
        assert (a - b).abs().max().item() <= 1e-3 * scale, problem
        if problem.temperature >= 0.5:
            assert (a - b).abs().max().item() <= 1e-5 * scale, problem
        assert abs(in_a - in_b) <= 1e-3 * abs(in_b) + 1e-5, problem


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
@pytest.mark.parametrize(("n", "k"), [(60, 30), (300, 4), (2000, 20)])
def test_vectors_and_entries_agree(n: int, k: int, temperature: float, dtype: torch.dtype, choose):
    """With absent items, a k and a temperature for every row, entries at large, small and no items, and gradients."""
    seed = torch.Generator().manual_seed(n)
    keys = khot.gumbel_keys(torch.zeros(5, n, dtype=dtype), seed)
    keys[1, ::3] = -torch.inf
    count = torch.tensor([k, k, 1, 0, k // 2])
    temperatures = temperature * torch.tensor([1, 1, 2, 1, 0.9], dtype=torch.float64)
    index = torch.randint(-1, n, (5, k), generator=seed)
    index[:, : k // 2] = khot.topk.topk_indices(keys, k)[:, : k // 2]
    for entries in (False, True):
        results = []
        for compiled in (True, False):
            choose(compiled)
            leaf, in_t = keys.clone().requires_grad_(), temperatures.clone().requires_grad_()
            if entries:
                out = khot.successive_softmax_at(leaf, count, in_t, index)
            else:
                out = khot.successive_softmax(leaf, count, in_t, ordered=True)
            out.backward(torch.randn(out.shape, generator=torch.Generator().manual_seed(k)).to(dtype))
            results.append((out.detach(), leaf.grad, in_t.grad))
        tolerance = 4e-6 if dtype == torch.float32 else 1e-11
        for ours, theirs in zip(*results, strict=True):
            assert (ours - theirs).abs().max() <= tolerance * max(1, theirs.abs().max())
