"""The accuracy that the docstrings promise, against textbook formulas with enough digits."""

import functools

import numpy as np
import pytest
import torch

import khot
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


@pytest.mark.parametrize(("n", "k"), [(1000, 100), (150, 150), (2000, 5)])
@pytest.mark.parametrize("temperature", [0.05, 0.3, 0.7, 3.0])
def test_successive_softmax_of_long_rows(n: int, k: int, temperature: float):
    keys = np.random.default_rng(n + k).gumbel(size=n)
    exact = oracles.successive_extended(keys, k, temperature)
    got = khot.successive_softmax(torch.from_numpy(keys), k, temperature).numpy()
    assert np.abs(got - exact).max() <= 1e-12


def near_ties(seed: int, n: int) -> np.ndarray:
    """A wide row whose two leaders lie 1e-7 apart: what a few steps make of their gap decides all that follows."""
    keys = np.random.default_rng(seed).uniform(-25, 25, size=n).astype(np.float32)
    keys[:2] = 25, 25 * (1 - 1e-7)
    return keys


@functools.cache
def exact_near_ties(seed: int, temperature: float) -> np.ndarray:
    return oracles.relaxed(oracles.successive_softmax, near_ties(seed, 50), 45, temperature)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("temperature", [0.05, 0.1, 0.3])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 2e-6), (torch.float64, 1e-12)])
def test_rows_that_amplify_errors(dtype: torch.dtype, error: float, temperature: float, ordered: bool, path: str):
    seeds = (0, 1)
    keys = torch.from_numpy(np.stack([near_ties(seed, 50) for seed in seeds])).to(dtype)
    got = khot.successive_softmax(keys, 45, temperature, ordered=ordered).double()
    exact = np.stack([exact_near_ties(seed, temperature) for seed in seeds])
    error = error if path == "compiled" else max(error, 2e-6)  # the plain loop has 16 digits to begin with
    assert np.abs((got.sum(1) if ordered else got).numpy() - exact).max() <= error


@pytest.mark.parametrize(("seed", "temperature"), [(0, 0.05), (2, 0.1)])
def test_gradients_of_rows_that_amplify_errors(seed: int, temperature: float):
    keys = near_ties(seed, 40)
    cotangent = np.random.default_rng(seed).normal(size=40).astype(np.float32)
    leaf = torch.from_numpy(keys).requires_grad_()
    khot.successive_softmax(leaf, 36, temperature).backward(torch.from_numpy(cotangent))
    exact = oracles.successive_gradient(keys, 36, temperature, cotangent)
    assert np.abs(leaf.grad.numpy() - exact).max() <= 1e-3 * np.abs(exact).max()


def test_the_two_gradient_oracles_agree():
    keys, cotangent = [0.3, -1.0, 0.5, 2.0], [1.0, -2.0, 0.5, 0.1]
    by_differences = oracles.gradient(oracles.successive_softmax, keys, 3, 0.2, cotangent)
    np.testing.assert_allclose(oracles.successive_gradient(keys, 3, 0.2, cotangent), by_differences, rtol=1e-12)


@pytest.mark.parametrize("far", [1e4, 1e5, 1e6])
@pytest.mark.parametrize("temperature", [0.7, 1.0, 5.0])
def test_an_outlier_that_comes_back_keeps_its_digits(far: float, temperature: float, path: str):
    """Taken once, its alpha is a difference of two large numbers, and it contends with the rest."""
    keys = np.array([far, 0.1, 0.2, 0.7])
    exact = oracles.successive_extended(keys, 3, temperature)
    got = khot.successive_softmax(torch.from_numpy(keys), 3, temperature).numpy()
    assert np.abs(got - exact).max() <= (1e-12 if path == "compiled" else max(1e-12, 1e-16 * far))


@pytest.mark.parametrize("spread", [1e2, 1e3])
def test_wide_rows_at_high_temperature(spread: float):
    keys = np.random.default_rng(0).uniform(-spread / 2, spread / 2, size=20)
    for temperature in (0.7, 5.0):
        exact = oracles.relaxed(oracles.successive_softmax, keys.astype(np.float32), 6, temperature)
        got = khot.successive_softmax(torch.from_numpy(keys).float(), 6, temperature).double().numpy()
        assert np.abs(got - exact).max() <= max(2e-6, 48e-8 * (spread / temperature + 6))
