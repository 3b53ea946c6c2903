"""What every relaxation promises, cut by property from one table."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from khot import hard_topk
from tests.topk.relaxations import RELAXATIONS, Relaxation, all_relaxations, ordered_relaxations

F64 = torch.float64
INF = torch.inf


def random_keys(*shape: int, seed: int = 0, scale: float = 1.0, dtype: torch.dtype = F64) -> torch.Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@all_relaxations
@given(
    keys=st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=12),
    k_share=st.floats(0, 1),
    log_t=st.floats(-12, 6),
)
@settings(max_examples=60)
def test_sums_to_k_within_its_range(relaxation: Relaxation, keys: list[float], k_share: float, log_t: float):
    k = round(k_share * len(keys))
    a = relaxation.function(torch.tensor(keys, dtype=F64), k, float(torch.tensor(log_t).exp()))
    assert abs(a.sum().item() - k) < 1e-9
    assert (a >= 0).all()
    assert not relaxation.bounded or (a <= 1).all()


@all_relaxations
@pytest.mark.parametrize("k", [0, 1, 3, 7, 8])
def test_limit_is_the_hard_top_k(relaxation: Relaxation, k: int):
    keys = random_keys(20, 8)
    torch.testing.assert_close(relaxation.function(keys, k, 1e-6), hard_topk(keys, k), atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("relaxation", "temperature"),
    [(r, t) for r in RELAXATIONS.values() for t in (0.1, 1.0, 30.0) if t >= r.keeps_order_from],
)
def test_keeps_the_order_of_the_keys(relaxation: Relaxation, temperature: float):
    keys = random_keys(50, 9).sort(-1).values
    assert (relaxation.function(keys, 4, temperature).diff(dim=-1) >= -1e-14).all()


@all_relaxations
@pytest.mark.parametrize("temperature", [0.2, 2.0])
def test_does_not_see_a_shift_of_all_keys(relaxation: Relaxation, temperature: float):
    keys = (random_keys(20, 7) * 64).round() / 64  # so that the shifted keys are exact
    shifted = relaxation.function(keys + 1024.0, 3, temperature)
    torch.testing.assert_close(shifted, relaxation.function(keys, 3, temperature), atol=1e-12, rtol=0)


@all_relaxations
def test_follows_a_permutation_of_the_items(relaxation: Relaxation):
    keys, order = random_keys(20, 7), torch.randperm(7, generator=torch.Generator().manual_seed(1))
    permuted = relaxation.function(keys[:, order], 3, 0.5)
    torch.testing.assert_close(permuted, relaxation.function(keys, 3, 0.5)[:, order], atol=1e-13, rtol=0)


@all_relaxations
@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0, 4.0])
def test_equal_keys_have_equal_entries_and_gradients(relaxation: Relaxation, temperature: float):
    keys = torch.tensor([2.0, 0.5, 2.0, -1.0, 2.0, 0.5], dtype=F64, requires_grad=True)
    a = relaxation.function(keys, 4, temperature)
    (grad,) = torch.autograd.grad(a @ keys.detach().square(), keys)
    for value in (a, grad) if relaxation.smooth_at_ties else (a,):
        assert value[0] == value[2] == value[4]
        assert value[1] == value[5]


@all_relaxations
@pytest.mark.parametrize("temperature", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 10.0])
def test_gradcheck_in_keys_and_temperature(relaxation: Relaxation, temperature: float, scale: float):
    keys = random_keys(2, 3, 5, scale=scale).requires_grad_()
    t = torch.full((2, 3), temperature, dtype=F64, requires_grad=True)
    k = torch.tensor([[0, 1, 2], [3, 4, 5]])
    eps = min(
        1e-6, 1e-3 * scale
    )  # small against the gaps of the keys: some relaxations have kinks where keys are equal
    assert torch.autograd.gradcheck(lambda x, t: relaxation.function(x, k, t), (keys, t), eps=eps)


@ordered_relaxations
def test_gradcheck_of_the_ordered_vectors(relaxation: Relaxation):
    keys = random_keys(4, 5).requires_grad_()
    t = torch.tensor([0.3, 0.7, 1.0, 3.0], dtype=F64, requires_grad=True)
    k = torch.tensor([2, 0, 5, 3])
    assert torch.autograd.gradcheck(lambda x, t: relaxation.function(x, k, t, ordered=True), (keys, t))


@ordered_relaxations
def test_ordered_vectors_are_relaxed_one_hots_that_add_up(relaxation: Relaxation):
    keys = random_keys(3, 4, 6)
    k = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 0], [1, 1, 1, 1]])
    vectors = relaxation.function(keys, k, 0.7, ordered=True)
    assert vectors.shape == (3, 4, 6, 6)
    torch.testing.assert_close(vectors.sum(-2), relaxation.function(keys, k, 0.7), atol=1e-14, rtol=0)
    torch.testing.assert_close(vectors.sum(-1), (torch.arange(6) < k.unsqueeze(-1)).double())
    hard = relaxation.function(keys, k, 1e-6, ordered=True)
    torch.testing.assert_close(hard, hard_topk(keys, k, ordered=True), atol=1e-9, rtol=0)


@all_relaxations
def test_rows_are_independent_with_k_and_temperature_of_their_own(relaxation: Relaxation):
    keys = random_keys(2, 3, 6)
    k, t = torch.tensor([[0, 2, 6], [1, 3, 5]]), torch.tensor([[0.1, 0.5, 1.0], [2.0, 0.7, 9.0]], dtype=F64)
    together = relaxation.function(keys, k, t)
    for i, j in torch.cartesian_prod(torch.arange(2), torch.arange(3)):
        alone = relaxation.function(keys[i, j], int(k[i, j]), float(t[i, j]))
        torch.testing.assert_close(together[i, j], alone, atol=1e-14, rtol=0)


@all_relaxations
@pytest.mark.parametrize("temperature", [0.05, 0.5, 5.0])
def test_absent_items_are_as_if_they_were_not_there(relaxation: Relaxation, temperature: float):
    keys = random_keys(10, 9).requires_grad_()
    here = torch.rand(9, generator=torch.Generator().manual_seed(3)) < 0.7
    masked = relaxation.function(keys.masked_fill(~here, -INF), 4, temperature)
    alone = relaxation.function(keys[:, here], 4, temperature)
    torch.testing.assert_close(masked[:, here], alone, atol=1e-13, rtol=0)
    assert (masked[:, ~here] == 0).all()
    cotangent = random_keys(10, 9, seed=4)
    (grad,) = torch.autograd.grad((masked * cotangent).sum(), keys)
    (grad_alone,) = torch.autograd.grad((alone * cotangent[:, here]).sum(), keys)
    torch.testing.assert_close(grad, grad_alone, atol=1e-11, rtol=1e-9)


@all_relaxations
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_short_rows_are_hard_without_gradient(relaxation: Relaxation, dtype: torch.dtype):
    keys = torch.tensor([[3.0, -INF, 1.0, -INF], [-INF] * 4, [-INF, 2.0, -INF, -INF]], dtype=dtype, requires_grad=True)
    a = relaxation.function(keys, 3, 0.5)
    assert a.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    a.sum().backward()
    assert (keys.grad == 0).all()
    if relaxation.ordered:
        vectors = relaxation.function(keys, 3, 0.5, ordered=True)
        assert vectors[0].tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
        assert (vectors[1] == 0).all()


@all_relaxations
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0, 10.0])
def test_lower_precision_is_the_rounded_float64_result(
    relaxation: Relaxation, dtype: torch.dtype, temperature: float, path: str
):
    keys = random_keys(20, 8, scale=3.0).to(dtype).requires_grad_()
    a = relaxation.function(keys, 3, temperature)
    exact = relaxation.function(keys.detach().double(), 3, temperature)
    assert a.dtype == dtype
    in_float32 = path == "torch" and dtype == torch.float32  # the plain loop, at temperatures where it may
    torch.testing.assert_close(a, exact.to(dtype), atol=2e-6 * in_float32, rtol=torch.finfo(dtype).eps)
    a.square().sum().backward()
    assert keys.grad.dtype == dtype
    assert keys.grad.isfinite().all()


@all_relaxations
def test_any_layout_and_any_batch_axes(relaxation: Relaxation):
    keys = random_keys(4, 6, 5)
    a = relaxation.function(keys, 2, 0.5)
    strided = torch.empty(5, 6, 4, dtype=F64).permute(2, 1, 0).copy_(keys)
    assert not strided.is_contiguous()
    assert torch.equal(relaxation.function(strided, 2, 0.5), a)
    assert torch.equal(relaxation.function(keys[:1].expand(4, -1, -1), 2, 0.5)[3], a[0])
    assert torch.equal(relaxation.function(keys[0, 0], 2, 0.5), a[0, 0])
    assert relaxation.function(keys[:0], 2, 0.5).shape == (0, 6, 5)
    assert relaxation.function(keys[:0], torch.zeros(0, 6, dtype=torch.int64), 0.5).shape == (0, 6, 5)
    scalars = relaxation.function(keys, torch.tensor(2), torch.tensor(0.5, dtype=F64))
    assert torch.equal(scalars, a)


@all_relaxations
@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e-3, 1e30, 1e300])
@pytest.mark.parametrize(
    "keys", [[1e308, -1e308, 0, 3, 3], [5e-324, 0, 0, -5e-324, 1], [0.0] * 5, [1e4, -1e4, 0, 1, 2]]
)
def test_extremes_are_finite(relaxation: Relaxation, temperature: float, keys: list[float]):
    x, t = torch.tensor(keys, dtype=F64, requires_grad=True), torch.tensor(temperature, dtype=F64, requires_grad=True)
    for k in (1, 3, 5):
        a = relaxation.function(x, k, t)
        assert a.isfinite().all()
        assert a.sum().item() == pytest.approx(k)
        grad, grad_t = torch.autograd.grad((a * torch.tensor([1.0, -2, 3, -4, 5])).sum(), (x, t))
        assert grad.isfinite().all()
        assert temperature < 1e-100 or not grad_t.isnan()


@all_relaxations
def test_gradients_saturate_at_the_largest_number_of_the_dtype(relaxation: Relaxation):
    keys = torch.tensor([0.0, 1e-4, -1.0, -2.0], dtype=torch.float16, requires_grad=True)
    (1000 * relaxation.function(keys, 1, 1e-4)[0]).backward()
    assert keys.grad.isfinite().all()
    assert keys.grad.abs().max() == torch.finfo(torch.float16).max
