"""The plain loop for other devices: what it promises, its number of operations, its memory, and that it never waits."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import khot
from khot import _jit
from khot.topk.successive import _plain
from khot.topk.successive._compiled.constants import SUM
from tests import oracles
from tests.problems import Problem, U, problems

WARM = 0.5
VIEWS = {"view", "_unsafe_view", "expand", "select", "slice", "detach", "alias", "unsqueeze", "squeeze", "reshape", "t"}


@pytest.fixture(autouse=True)
def plain(path: str) -> None:
    if path == "compiled":
        pytest.skip("the same for both")


def promised(problem: Problem) -> float:
    """At temperatures at which errors do not grow."""
    unit = U if problem.keys.dtype == np.float32 else 1e-16
    return max(2e-6 if unit == U else 1e-13, 8 * unit * (problem.range / problem.temperature + problem.k))


def test_results_at_warm_temperatures():
    for problem in problems(150, 7, longest=2000, most=2e4):
        if problem.temperature >= WARM and problem.range > 0:
            present = problem.keys > -np.inf
            exact = oracles.successive_extended(problem.keys[present].astype(float), problem.k, problem.temperature)
            keys = torch.from_numpy(problem.keys)
            got = khot.successive_softmax(keys, problem.k, problem.temperature).numpy()
            assert np.abs(got[present] - exact).max() <= promised(problem), problem
            assert (got[~present] == 0).all()


@pytest.mark.parametrize("temperature", [0.1, 0.25])
def test_errors_at_cold_temperatures_grow_as_those_of_float64_do(temperature: float):
    """A gap of two items that contend is multiplied by up to 1/t - 1 a step."""
    for seed in range(20):
        keys = np.random.default_rng(seed).gumbel(size=50)
        for k in (2, 5, 8):
            exact = oracles.relaxed(oracles.successive_softmax, keys, k, temperature)
            got = khot.successive_softmax(torch.from_numpy(keys), k, temperature).numpy()
            assert np.abs(got - exact).max() <= 1e-13 * (1 / temperature) ** k


def test_gradients_are_those_of_the_compiled_loops():
    for problem in problems(100, 11, longest=2000, most=2e4):
        if problem.temperature >= WARM and problem.range <= 600 * problem.temperature:
            keys, results = torch.from_numpy(problem.keys), []
            cotangent = torch.randn(len(keys), generator=torch.Generator().manual_seed(0)).to(keys.dtype)
            for compiled in (True, False):
                _jit.AVAILABLE = compiled  # put back after each test of this folder
                leaf, t = keys.clone().requires_grad_(), torch.tensor(problem.temperature).double().requires_grad_()
                khot.successive_softmax(leaf, problem.k, t).backward(cotangent)
                results.append((leaf.grad.double(), t.grad))
            (ours, our_t), (plain, plain_t) = results
            scale = max(ours.abs().max().item(), 1e-10)
            assert (ours - plain).abs().max().item() <= 1e-5 * scale, problem
            assert abs(our_t - plain_t) <= 1e-3 * abs(our_t) + 1e-5, problem


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [0.5, 3.0])
@pytest.mark.parametrize(("n", "k"), [(60, 30), (300, 4), (2000, 20)])
def test_vectors_and_entries_are_those_of_the_compiled_loops(n: int, k: int, temperature: float, dtype: torch.dtype):
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
            _jit.AVAILABLE = compiled
            leaf, in_t = keys.clone().requires_grad_(), temperatures.clone().requires_grad_()
            if entries:
                out = khot.successive_softmax_at(leaf, count, in_t, index)
            else:
                out = khot.successive_softmax(leaf, count, in_t, ordered=True)
            out.backward(torch.randn(out.shape, generator=torch.Generator().manual_seed(k)).to(dtype))
            results.append((out.detach(), leaf.grad, in_t.grad))
        tolerance = 4e-6 if dtype == torch.float32 else 1e-10
        for ours, plain in zip(*results, strict=True):
            assert (ours - plain).abs().max() <= tolerance * max(1, plain.abs().max())


class Counted(TorchDispatchMode):
    """Counts the operations that compute something."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if (name := func.overloadpacket.__name__) not in VIEWS:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def operations(steps: int, wide: bool) -> tuple[int, int]:
    """Of a forward and a backward pass of `steps`."""
    keys = torch.randn(3, 40, dtype=torch.float64 if wide else torch.float32)
    rows = _plain.prepare(keys, steps, 1.0, steps)
    nothing, out = torch.empty(3, 0, dtype=torch.int64), torch.zeros_like(rows.logits)
    with Counted() as forward:
        state = _plain.forward(rows, nothing, SUM, out, keep=True)
    with Counted() as backward:
        _plain.backward(rows, nothing, SUM, state, torch.ones_like(out), want_t=False)
    return len(forward.names), len(backward.names)


@pytest.mark.parametrize("wide", [True, False])
def test_operations_of_a_step(wide: bool):
    few, more = operations(5, wide), operations(15, wide)
    assert (more[0] - few[0]) / 10 <= 12
    assert (more[1] - few[1]) / 10 <= 16


def test_memory_of_many_steps():
    for steps in (1, 16, 17, 100, 1000, 10_000):
        rows, n = _plain.state_shape(7, steps)
        segment = _plain._segment(steps)
        assert n == 7
        assert rows + segment <= 2 * max(16, steps**0.5 + 1)
        assert rows * segment >= steps or steps <= 16


@pytest.mark.parametrize("steps", [3, 40])
def test_nothing_waits_for_a_device(steps: int):
    """The device "meta" has no values: whatever reads one raises."""
    keys = torch.empty(4, 100, device="meta", requires_grad=True)
    with pytest.raises(RuntimeError):
        bool((keys > 0).any())
    index = torch.empty(4, steps, dtype=torch.int64, device="meta")
    count = torch.empty(4, dtype=torch.int64, device="meta")
    for result in (
        khot.successive_softmax(keys, steps, 0.5),
        khot.successive_softmax(keys, steps, 2.0, ordered=True),
        khot.successive_softmax_at(keys, steps, 1.0, index),
        khot.successive_softmax(keys, count, 1.0, k_max=steps),
        khot.successive_softmax(keys, count, 1.0),
        khot.successive_softmax(keys, steps, torch.ones(4, device="meta")),
    ):
        result.sum().backward()
    assert keys.grad is not None
    assert keys.grad.shape == keys.shape


def rows_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plain, "_narrow", lambda keys, temperature: False)


@pytest.mark.parametrize("k", [1, 3, 20, 60])
def test_hostile_rows_stay_finite_and_add_up(k: int, monkeypatch: pytest.MonkeyPatch):
    rows_on_a_device(monkeypatch)
    keys = torch.randn(6, 60, generator=torch.Generator().manual_seed(k))
    keys *= torch.tensor([[1], [30], [1e4], [1e30], [0], [1]])
    keys[5, 10:] = -torch.inf
    for temperature in (1e-30, 0.01, 1.0, 1e30):
        leaf = keys.clone().requires_grad_()
        a = khot.successive_softmax(leaf, k, temperature)
        a.backward(torch.randn(a.shape, generator=torch.Generator().manual_seed(1)))
        present = torch.tensor([60.0] * 5 + [10.0])
        torch.testing.assert_close(a.detach().sum(-1), present.clamp_max(k), atol=1e-4, rtol=1e-4)
        assert (a >= 0).all()
        assert leaf.grad.isfinite().all()


def test_a_largest_k():
    keys, k = torch.randn(3, 10), torch.tensor([1, 4, 2])
    vectors = khot.successive_softmax(keys, k, 1.0, ordered=True, k_max=6)
    assert vectors.shape == (3, 6, 10)
    assert (vectors[:, 4:] == 0).all()
    torch.testing.assert_close(vectors.sum(1), khot.successive_softmax(keys, k, 1.0))
    with pytest.raises(khot.errors.InvalidValueError, match="k_max must be at least the largest k, 4, but got 3"):
        khot.successive_softmax(keys, k, 1.0, k_max=3)
