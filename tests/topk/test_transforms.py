"""The operators under torch's function transforms, its compiler, autocast and double backward."""

import pytest
import torch
from torch.func import grad, jacrev, vmap

import khot
from khot.errors import NotAvailableError
from tests.topk.relaxations import Relaxation, all_relaxations, ordered_relaxations

F64 = torch.float64


def keys_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=F64)


@all_relaxations
@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_vmap_equals_a_loop(relaxation: Relaxation, in_dim: int):
    keys = keys_of(3, 4, 5)
    mapped = vmap(lambda x: relaxation.function(x, 2, 0.5), in_dims=in_dim)(keys)
    loop = torch.stack([relaxation.function(x, 2, 0.5) for x in keys.unbind(in_dim)])
    torch.testing.assert_close(mapped, loop, atol=1e-14, rtol=0)


@all_relaxations
def test_vmap_over_the_temperature(relaxation: Relaxation):
    keys, temperatures = keys_of(4, 5), torch.tensor([0.2, 1.0, 3.0], dtype=F64)
    mapped = vmap(lambda t: relaxation.function(keys, 2, t))(temperatures)
    loop = torch.stack([relaxation.function(keys, 2, float(t)) for t in temperatures])
    torch.testing.assert_close(mapped, loop, atol=1e-14, rtol=0)


@all_relaxations
def test_vmap_over_nothing(relaxation: Relaxation):
    assert vmap(lambda x: relaxation.function(x, 2, 0.5))(keys_of(0, 4, 5)).shape == (0, 4, 5)


@ordered_relaxations
def test_vmap_of_the_ordered_vectors(relaxation: Relaxation):
    keys = keys_of(3, 4, 5)
    mapped = vmap(lambda x: relaxation.function(x, 2, 0.5, ordered=True))(keys)
    torch.testing.assert_close(mapped, relaxation.function(keys, 2, 0.5, ordered=True), atol=1e-14, rtol=0)


@all_relaxations
def test_grad_and_vmap_of_grad(relaxation: Relaxation):
    keys, weights = keys_of(6, 5), torch.arange(5.0, dtype=F64)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return relaxation.function(x, 3, 0.7) @ weights

    leaf = keys.clone().requires_grad_()
    loss(leaf).sum().backward()
    torch.testing.assert_close(vmap(grad(loss))(keys), leaf.grad, atol=1e-13, rtol=0)
    torch.testing.assert_close(grad(loss)(keys[0]), leaf.grad[0], atol=1e-13, rtol=0)


@all_relaxations
def test_jacrev_is_the_jacobian(relaxation: Relaxation):
    keys = keys_of(5)
    jacobian = jacrev(lambda x: relaxation.function(x, 2, 0.5))(keys)
    reference = torch.autograd.functional.jacobian(lambda x: relaxation.function(x, 2, 0.5), keys)
    torch.testing.assert_close(jacobian, reference, atol=1e-13, rtol=0)
    assert jacobian.sum(-1).abs().max() < 1e-12  # a shift of all keys changes nothing


@all_relaxations
def test_compiles_as_one_graph(relaxation: Relaxation):
    torch._dynamo.reset()

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (relaxation.function(x, 2, 0.5) * torch.arange(5.0, dtype=x.dtype)).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    eager_keys, keys = keys_of(4, 5).requires_grad_(), keys_of(4, 5).requires_grad_()
    loss(eager_keys).backward()
    value = compiled(keys)
    value.backward()
    torch.testing.assert_close(value, loss(eager_keys))
    torch.testing.assert_close(keys.grad, eager_keys.grad)


def test_sampling_compiles_as_one_graph():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: khot.sample_subset(x, 2, 0.5, hard=True), fullgraph=True, backend="aot_eager")
    logits = keys_of(4, 5).requires_grad_()
    sample = compiled(logits)
    assert (sample.sum(-1) == 2).all()
    assert ((sample == 0) | (sample == 1)).all()
    (sample * torch.arange(5)).sum().backward()
    assert logits.grad.abs().sum() > 0


def test_hard_top_k_maps_and_compiles():
    torch._dynamo.reset()
    keys = keys_of(3, 4, 5)
    expected = khot.hard_topk(keys, 2)
    assert torch.equal(vmap(lambda x: khot.hard_topk(x, 2))(keys), expected)
    assert torch.equal(torch.compile(khot.hard_topk, fullgraph=True, backend="aot_eager")(keys, 2), expected)


def test_a_k_for_each_row_maps():
    keys, k = keys_of(4, 5), torch.tensor([0, 1, 2, 5])
    for function in (khot.hard_topk, lambda x, k: khot.softsort(x, k, 0.5), lambda x, k: khot.neuralsort(x, k, 0.5)):
        torch.testing.assert_close(vmap(function)(keys, k), function(keys, k))


def test_compiled_code_uses_the_k_max_that_it_is_given():
    torch._dynamo.reset()
    keys, k = keys_of(2, 5), torch.tensor([2, 1])
    compiled = torch.compile(khot.successive_softmax, fullgraph=True, backend="aot_eager")
    result = compiled(keys, k, 0.5, ordered=True, k_max=3)
    torch.testing.assert_close(result, khot.successive_softmax(keys, k, 0.5, ordered=True, k_max=3))


@all_relaxations
def test_a_temperature_may_change_before_the_backward_pass(relaxation: Relaxation):
    """As that of a layer does, if it anneals before it goes back."""
    keys, temperature = keys_of(1, 5).requires_grad_(), torch.tensor(0.5, dtype=F64)
    value = relaxation.function(keys, 2, temperature) @ torch.arange(5.0, dtype=F64)
    (before,) = torch.autograd.grad(value, keys, retain_graph=True)
    temperature.fill_(5.0)
    assert torch.equal(torch.autograd.grad(value, keys)[0], before)


def test_sampling_maps_with_different_noise():
    samples = vmap(lambda x: khot.sample_subset(x, 2, 0.5), randomness="different")(torch.zeros(50, 6))
    torch.testing.assert_close(samples.sum(-1), torch.full((50,), 2.0))
    assert not torch.equal(samples[0], samples[1])


@all_relaxations
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_the_arithmetic_alone(relaxation: Relaxation, dtype: torch.dtype):
    layer = torch.nn.Linear(4, 6)
    with torch.autocast("cpu", dtype=dtype):
        keys = layer(torch.ones(3, 4))
        a = relaxation.function(keys, 2, 0.1)
    assert keys.dtype == a.dtype == dtype
    expected = relaxation.function(keys.detach(), 2, 0.1)
    assert torch.equal(a, expected)
    a.square().sum().backward()
    assert layer.weight.grad.isfinite().all()


@all_relaxations
def test_double_backward_works_or_raises(relaxation: Relaxation):
    keys = keys_of(5).requires_grad_()
    constant = torch.arange(5.0, dtype=F64)

    def gradient() -> torch.Tensor:
        (first,) = torch.autograd.grad(relaxation.function(keys, 2, 0.7) @ constant, keys, create_graph=True)
        return first

    if relaxation.differentiable_twice:
        assert torch.autograd.gradgradcheck(lambda x: relaxation.function(x, 2, 0.7), keys)
        assert torch.autograd.grad(gradient().square().sum(), keys)[0].abs().sum() > 0
    else:
        first = gradient()
        with pytest.raises(NotAvailableError, match="twice"):
            first.square().sum().backward()


@all_relaxations
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_where_values_cannot_be_checked_bad_keys_give_nan(relaxation: Relaxation, bad: float):
    torch._dynamo.reset()
    keys = keys_of(3, 5)
    keys[1, 2] = bad

    def function(x: torch.Tensor) -> torch.Tensor:
        return relaxation.function(x, 2, 0.5)

    compiled = [torch.compile(function, fullgraph=True, backend="aot_eager")] if bad != torch.inf else []
    for transformed in (vmap(function), *compiled):
        result = transformed(keys)
        assert result[1].isnan().all()
        torch.testing.assert_close(result[[0, 2]], function(keys[[0, 2]]))


@all_relaxations
def test_where_values_cannot_be_checked_bad_temperatures_give_nan(relaxation: Relaxation):
    temperatures = torch.tensor([0.5, 0.0, -1.0, torch.nan, torch.inf], dtype=F64)
    keys = keys_of(5)
    result = vmap(lambda t: relaxation.function(keys, 2, t))(temperatures)
    assert result[0].isfinite().all()
    assert result[1:].isnan().all()


def test_where_values_cannot_be_checked_bad_logits_give_nan_in_hard_samples():
    torch._dynamo.reset()
    logits = torch.tensor([torch.nan, torch.nan, 1.0, 2.0])
    layer = khot.nn.SubsetSampler(3, 0.5, hard=True)
    for mode in (layer.train(), layer.eval()):
        assert torch.compile(mode, fullgraph=True, backend="aot_eager")(logits).isnan().all()


def test_annealing_does_not_compile_anew():
    torch._dynamo.reset()
    layer = khot.nn.SubsetSampler(2, khot.schedules.Linear(2.0, 0.5, steps=4))
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(layer, fullgraph=True, backend=counter)
    for step in range(4):
        layer.anneal(step)
        assert compiled(keys_of(3, 5)).sum().item() == pytest.approx(6)
    assert counter.frame_count == 1
