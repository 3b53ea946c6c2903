"""The accuracy that the docstrings promise, against textbook formulas with enough digits."""

import numpy as np
import pytest
import torch

import khot
from khot.topk import _successive_exact
from tests import oracles
from tests.topk.relaxations import Relaxation, all_relaxations


def problems(count: int, seed: int, most: int):
    """Rows of every kind that has broken something: smooth, wide, tied, integer, coarse, led by a tie far above."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        n = int(np.exp(rng.uniform(np.log(2), np.log(most))))
        k = int(np.ceil(np.exp(rng.uniform(0, np.log(n)))))
        keys = [
            lambda n=n: rng.gumbel(size=n),
            lambda n=n: rng.normal(size=n) * 10,
            lambda n=n: rng.uniform(-25, 25, size=n),
            lambda n=n: rng.integers(-4, 4, size=n).astype(float),
            lambda n=n: rng.normal(size=n).astype(np.float16).astype(float),
            lambda n=n: np.r_[25.0, 25.0, rng.uniform(-25, -10, size=n)][:n],
        ][i % 6]()
        yield keys * min(1.0, 50 / max(np.ptp(keys), 1e-9)), k


@all_relaxations
@pytest.mark.parametrize("temperature", [0.05, 0.1, 0.3, 0.7, 1.0, 5.0])
def test_float32_result(relaxation: Relaxation, temperature: float):
    for keys, k in problems(12, seed=1, most=24):
        keys = keys.astype(np.float32)
        got = relaxation.function(torch.from_numpy(keys), k, temperature).double().numpy()
        exact = oracles.relaxed(relaxation.oracle, keys, k, temperature)
        assert np.abs(got - exact).max() <= relaxation.error(len(keys), k, float(np.ptp(keys)), temperature)


@all_relaxations
@pytest.mark.parametrize("temperature", [0.05, 0.3, 0.7, 5.0])
def test_float64_result(relaxation: Relaxation, temperature: float):
    for keys, k in problems(12, seed=2, most=24):
        got = relaxation.function(torch.from_numpy(keys), k, temperature).numpy()
        exact = oracles.relaxed(relaxation.oracle, keys, k, temperature)
        assert np.abs(got - exact).max() <= 1e-12 * (len(keys) if relaxation.function is khot.neuralsort else 1)


@all_relaxations
@pytest.mark.parametrize("temperature", [0.05, 0.2, 0.7, 2.0])
def test_gradient(relaxation: Relaxation, temperature: float):
    rng = np.random.default_rng(3)
    for keys, k in problems(6, seed=4, most=8):
        if len(np.unique(keys)) < len(keys) and relaxation.function in (khot.neuralsort, khot.softsort):
            continue  # not differentiable there
        keys, cotangent = keys.astype(np.float32), rng.normal(size=len(keys))
        leaf = torch.from_numpy(keys).requires_grad_()
        relaxation.function(leaf, k, temperature).backward(torch.from_numpy(cotangent).float())
        exact = oracles.gradient(relaxation.oracle, keys, k, temperature, cotangent.astype(np.float32))
        # where the whole gradient is rounding noise of the cotangent there is nothing to compare
        scale = max(np.abs(exact).max(), 1e-10 * np.abs(cotangent).max())
        assert np.abs(leaf.grad.numpy() - np.clip(exact, -3.4e38, 3.4e38)).max() <= 1e-3 * scale


@pytest.mark.parametrize(("n", "k"), [(1000, 100), (300, 300), (2000, 5)])
@pytest.mark.parametrize("temperature", [0.05, 0.3, 0.7, 3.0])
def test_successive_softmax_of_long_rows(n: int, k: int, temperature: float):
    keys = np.random.default_rng(n + k).gumbel(size=n)
    exact = oracles.successive_extended(keys, k, temperature)
    got = khot.successive_softmax(torch.from_numpy(keys), k, temperature).numpy()
    assert np.abs(got - exact).max() <= 1e-12


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_that_lose_digits_are_done_again(monkeypatch: pytest.MonkeyPatch, ordered: bool):
    redone = []
    forward = _successive_exact.forward

    def counting(keys: torch.Tensor, *args):
        redone.append(len(keys))
        return forward(keys, *args)

    monkeypatch.setattr(_successive_exact, "forward", counting)
    keys = np.random.default_rng(7).uniform(-25, 25, size=(30, 20))
    keys[:, 0] = keys.max(-1)  # contenders that float64 can tell apart, but whose gap a few steps amplify
    keys[:, 1] = keys[:, 0] * (1 + 1e-9)
    got = khot.successive_softmax(torch.from_numpy(keys), 12, 0.05, ordered=ordered).numpy()
    assert sum(redone) > 0
    for row, result in zip(keys, got, strict=True):
        result = result.sum(0) if ordered else result
        assert np.abs(result - oracles.relaxed(oracles.successive, row, 12, 0.05)).max() <= 1e-12
