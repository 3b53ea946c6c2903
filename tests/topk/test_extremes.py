"""Where numbers under- or overflow on the way, and derivatives that go forward."""

import pytest
import torch
from torch.autograd import forward_ad

import khot


def keys_of(n: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(1, n, dtype=dtype, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("scale", "temperature"), [(1.0, 1e44), (1.0, 1e46), (1e-16, 1e30), (1e-40, 1e3)])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_sum_is_k_where_differences_underflow(scale: float, temperature: float, ordered: bool):
    result = khot.successive_softmax(keys_of(250) * scale, 30, temperature, ordered=ordered)
    assert result.sum().item() == pytest.approx(30, rel=1e-5)


@pytest.mark.parametrize("size", [1e22, 1e30, 1e36])
def test_gradients_scale_with_the_cotangent(size: float):
    sign = torch.randn(1, 3000, generator=torch.Generator().manual_seed(1)).sign()
    ones, large = (keys_of(3000).requires_grad_() for _ in range(2))
    khot.successive_softmax(ones, 5, 0.5).backward(sign)
    khot.successive_softmax(large, 5, 0.5).backward(sign * size)
    assert (large.grad / size - ones.grad).abs().max() <= 1e-3 * ones.grad.abs().max()


@pytest.mark.parametrize("size", [1e37, 3e38])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("n", [50, 3000])
def test_cotangents_that_overflow_saturate(n: int, ordered: bool, size: float):
    leaf = keys_of(n)
    leaf[:, 3] = -torch.inf
    leaf.requires_grad_()
    result = khot.successive_softmax(leaf, 5, 1.0, ordered=ordered)
    result.backward(torch.full_like(result, size))
    assert leaf.grad.isfinite().all()


def test_tensors_with_the_negative_bit():
    keys = torch.randn(30, dtype=torch.complex64).conj().imag
    leaf = keys.clone().requires_grad_()
    result = khot.successive_softmax(leaf, 2, 1.0)
    result.backward(keys)
    assert torch.equal(khot.successive_softmax(keys, 2, 1.0), result.detach())


def test_forward_derivatives_are_not_lost():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(30), torch.ones(30))
        assert torch.equal(forward_ad.unpack_dual(khot.gumbel_keys(dual)).tangent, torch.ones(30))
        with pytest.raises((RuntimeError, NotImplementedError), match="jvp"):
            khot.successive_softmax(dual, 2, 1.0)


def test_a_row_with_many_active_items_does_not_depend_on_the_k_of_others():
    keys = keys_of(10_000).reshape(2, 5000)
    keys[:, ::64] += 8
    together = khot.successive_softmax(keys, torch.tensor([5, 625]), 0.7)
    assert torch.equal(together[0], khot.successive_softmax(keys[0], 5, 0.7))


@pytest.mark.parametrize("offset", [2.0**20, -(2.0**40)])
@pytest.mark.parametrize(("n", "temperature"), [(3000, 0.1), (3000, 0.3), (3000, 0.7), (40, 0.3)])
def test_a_common_offset_of_the_keys_changes_nothing(n: int, temperature: float, offset: float):
    keys = (keys_of(n, torch.float64) * 4096).round() / 4096  # to which the offset can be added without rounding
    cotangent = keys_of(n, torch.float64).flip(-1)

    def solve(leaf: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaf, t = leaf.requires_grad_(), torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
        result = khot.successive_softmax(leaf, 5, t)
        return result.detach(), *torch.autograd.grad(result, (leaf, t), cotangent)

    for moved, unmoved in zip(solve(keys + offset), solve(keys), strict=True):
        assert (moved - unmoved).abs().max() <= 2e-12 * unmoved.abs().max()
