"""What is particular to the paper's relaxation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import khot

UNIT, F64 = 6e-8, torch.float64


@given(
    keys=st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=30),
    k_share=st.floats(0, 1),
    temperature=st.floats(1, 100),
)
@settings(max_examples=300)
def test_theorem_1_order_is_kept_from_temperature_1(keys: list[float], k_share: float, temperature: float):
    keys_tensor = torch.tensor(sorted(keys))
    k = max(1, round(k_share * len(keys)))
    a = khot.successive_softmax(keys_tensor, k, temperature)
    assert (a.diff() >= -4 * UNIT * k).all()


def test_the_papers_counterexample_below_temperature_1():
    a = khot.successive_softmax(torch.tensor([1.0, 2.0]), 2, 0.4)
    assert [round(x, 2) for x in a.tolist()] == [1.05, 0.95]


def test_is_not_bounded_by_one():
    outlier = khot.successive_softmax(torch.tensor([1000.0, 0.0, 0.0]), 3, 5.0)
    assert outlier[0] > 2.9


def test_one_step_is_a_softmax():
    keys = torch.randn(5, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.softmax(keys / 0.3, -1)
    torch.testing.assert_close(khot.successive_softmax(keys, 1, 0.3), expected, atol=1e-15, rtol=0)


def test_two_equal_leaders_far_above_the_rest_have_a_finite_gradient():
    keys = torch.tensor([50.0, 50.0, *[0.0] * 58], dtype=torch.float64, requires_grad=True)
    weights = torch.linspace(0, 1, 60, dtype=torch.float64)
    (khot.successive_softmax(keys, 45, 0.05) * weights).sum().backward()
    assert keys.grad.isfinite().all()
    assert keys.grad.abs().max() > 1e50
    keys32 = keys.detach().float().requires_grad_()
    (khot.successive_softmax(keys32, 45, 0.05) * weights).sum().backward()
    assert keys32.grad.abs().max() == torch.finfo(torch.float32).max


def test_cold_and_chaotic_rows_stay_valid():
    keys = 1e3 * torch.randn(20, 40, generator=torch.Generator().manual_seed(0))
    for temperature in (1e-4, 0.001, 0.01, 0.04):
        a = khot.successive_softmax(keys, 38, temperature)
        assert (a >= 0).all()
        torch.testing.assert_close(a.sum(-1), torch.full((20,), 38.0))


def test_a_leader_with_p_close_to_one_keeps_its_gradient():
    """In float32, 1 - p rounds to 0 here and textbook code returns NaN or a jump."""
    keys = torch.tensor([10.0, 0.0, -1.0], requires_grad=True)
    a = khot.successive_softmax(keys, 2, 0.1)
    a[1].backward()
    assert keys.grad.isfinite().all()
    assert keys.grad[1] > 0


@pytest.mark.parametrize("temperature", [1e45, 1e50, 1e300])
def test_absent_items_stay_absent_at_huge_temperatures(temperature: float):
    keys = torch.cat([torch.zeros(20), torch.full((20,), -torch.inf)])
    a = khot.successive_softmax(keys, 2, temperature)
    torch.testing.assert_close(a[:20], torch.full((20,), 0.1))
    assert (a[20:] == 0).all()


def test_a_row_that_asks_for_nothing_beside_one_that_does():
    keys = torch.full((2, 100), -torch.inf)
    keys[1] = torch.arange(100.0)
    a = khot.successive_softmax(keys, torch.tensor([0, 2]), 1.0)
    torch.testing.assert_close(a.sum(-1), torch.tensor([0.0, 2.0]))


def test_compiles_for_any_shape():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: khot.successive_softmax(x, 2, 1.0), backend="aot_eager", fullgraph=True)
    for shape in ((3, 40), (5, 70), (2, 90)):
        keys = torch.randn(shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
        a = compiled(keys)
        a.square().sum().backward()
        torch.testing.assert_close(a, khot.successive_softmax(keys, 2, 1.0))
        assert keys.grad.isfinite().all()


def test_entries_map_over_the_index_alone():
    keys, index = torch.arange(40.0), torch.tensor([[1, 2], [39, 38]])
    mapped = torch.func.vmap(lambda i: khot.successive_softmax_at(keys, 2, 1.0, i))(index)
    loop = torch.stack([khot.successive_softmax_at(keys, 2, 1.0, i) for i in index])
    torch.testing.assert_close(mapped, loop)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_entries_take_any_integer_dtype(dtype: torch.dtype):
    keys, index = torch.arange(40.0), torch.tensor([39, 38])
    expected = khot.successive_softmax_at(keys, 2, 1.0, index)
    assert torch.equal(khot.successive_softmax_at(keys, 2, 1.0, index.to(dtype)), expected)


@pytest.mark.parametrize("index", [[40, 0], [-2, 0], [1], [0.5, 1.0]])
def test_bad_indices_are_named(index: list):
    with pytest.raises(khot.errors.KhotError, match="index must"):
        khot.successive_softmax_at(torch.arange(40.0), 2, 1.0, torch.tensor(index))


@pytest.mark.parametrize(("gap", "temperature"), [(180.0, 0.5), (189.0, 0.51), (220.0, 0.55), (270.0, 0.61)])
def test_a_second_leader_next_to_which_the_rest_underflows_has_a_finite_gradient(gap: float, temperature: float):
    keys = torch.tensor([0.0, -gap, -2.5 * gap], dtype=F64, requires_grad=True)
    value = khot.successive_softmax(keys, 2, temperature)
    value[0].backward()
    torch.testing.assert_close(value.detach(), torch.tensor([1.0, 1.0, 0.0], dtype=F64))
    assert (keys.grad.abs() < 1e-100).all()


@pytest.mark.parametrize("temperature", [0.3, 0.5, 0.61, 1.0, 4.0])
def test_gradients_are_finite_whatever_the_gaps(temperature: float):
    noise = np.random.default_rng(0)
    for n in (2, 3, 5, 9, 13):
        gaps = np.exp(noise.uniform(-2, 8, size=(300, n))) * (noise.random((300, n)) < 0.7)
        keys = torch.from_numpy(noise.permuted(-gaps.cumsum(1), axis=1)).requires_grad_()
        for k in range(1, n + 1):
            (grad,) = torch.autograd.grad((khot.successive_softmax(keys, k, temperature) ** 2).sum(), keys)
            assert grad.isfinite().all()


def test_compiled_calls_with_other_sizes_have_the_state_that_they_announce():
    compiled = torch.compile(khot.successive_softmax, backend="aot_eager", dynamic=True)
    for n, k in ((7, 1), (7, 4), (60, 5), (1000, 4), (20, 2)):
        keys = torch.randn(3, n, requires_grad=True)
        result = compiled(keys, k, 0.5)
        result.sum().backward()
        assert torch.allclose(result, khot.successive_softmax(keys, k, 0.5), atol=1e-6)
