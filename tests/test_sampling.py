import functools

import pytest
import torch
from scipy import stats

import khot
from khot.errors import InvalidTypeError, InvalidValueError
from tests import oracles

F64 = torch.float64
ALPHA = 1e-3


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_is_the_relaxed_top_k_of_gumbel_keys():
    logits = torch.randn(3, 6, dtype=F64, generator=seeded(1))
    for relaxation in (khot.successive_softmax, khot.neuralsort, khot.softsort, khot.capped_simplex):
        sample = khot.sample_subset(logits, 2, 0.5, relaxation=relaxation, generator=seeded())
        torch.testing.assert_close(sample, relaxation(khot.gumbel_keys(logits, seeded()), 2, 0.5), atol=1e-13, rtol=0)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_hard_samples_follow_the_exact_law(temperature: float):
    weights, k, count = [0.1, 0.2, 0.3, 0.4, 1.0], 2, 20_000
    logits = torch.tensor(weights, dtype=F64).log()
    samples = khot.sample_subset(logits, k, temperature, hard=True, sample_shape=(count,), generator=seeded(2))
    table = oracles.subset_probabilities(weights, k)
    members = samples.nonzero()[:, 1].reshape(count, k)
    observed = [int((members == torch.tensor(subset)).all(-1).sum()) for subset in table]
    assert stats.chisquare(observed, [count * p for p in table.values()]).pvalue > ALPHA


def test_straight_through_is_hard_in_value_and_relaxed_in_gradient():
    logits = torch.randn(40, 6, dtype=F64, generator=seeded(1)).requires_grad_()
    weights = torch.arange(6.0, dtype=F64)
    hard = khot.sample_subset(logits, 3, 0.1, hard=True, generator=seeded())
    keys = khot.gumbel_keys(logits, seeded())
    assert torch.equal(hard, khot.hard_topk(keys, 3))
    relaxed = khot.sample_subset(logits, 3, 0.1, generator=seeded())
    assert not torch.equal(khot.hard_topk(relaxed, 3), hard)  # the top k of the relaxed vector is not that of the keys
    (through,) = torch.autograd.grad((hard * weights).sum(), logits)
    (direct,) = torch.autograd.grad((relaxed * weights).sum(), logits)
    assert torch.equal(through, direct)


@pytest.mark.parametrize("hard", [False, True])
def test_shapes_with_k_and_temperature_of_each_row(hard: bool):
    logits = torch.zeros(3, 4, 6)
    k, temperature = torch.arange(12).reshape(3, 4) % 6, torch.rand(3, 4, generator=seeded()) + 0.5
    sample = khot.sample_subset(logits, k, temperature, hard=hard, sample_shape=(2, 5), generator=seeded())
    assert sample.shape == (2, 5, 3, 4, 6)
    torch.testing.assert_close(sample.sum(-1), k.float().expand(2, 5, 3, 4))
    ordered = khot.sample_subset(
        logits, k, temperature, hard=hard, ordered=True, sample_shape=(2, 5), generator=seeded()
    )
    assert ordered.shape == (2, 5, 3, 4, 5, 6)
    torch.testing.assert_close(ordered.sum(-2), sample)


def test_samples_are_independent_across_the_sample_shape():
    samples = khot.sample_subset(torch.zeros(4), 1, 0.1, hard=True, sample_shape=(4000,), generator=seeded())
    pairs = samples[:-1].argmax(-1) * 4 + samples[1:].argmax(-1)
    assert stats.chisquare(torch.bincount(pairs, minlength=16).numpy()).pvalue > ALPHA


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_keeps_the_dtype_of_the_logits(dtype: torch.dtype):
    logits = torch.zeros(5, 8, dtype=dtype, requires_grad=True)
    for hard in (False, True):
        sample = khot.sample_subset(logits, 3, 0.5, hard=hard, generator=seeded())
        assert sample.dtype == dtype
        (sample * torch.arange(8)).sum().backward()
    assert logits.grad.isfinite().all()


def test_absent_items_are_never_chosen():
    logits = torch.tensor([0.0, -torch.inf, 0.0, -torch.inf, -20.0])
    sample = khot.sample_subset(logits, 3, 1.0, hard=True, sample_shape=(100,), generator=seeded())
    assert (sample == torch.tensor([1.0, 0, 1, 0, 1])).all()


def test_takes_a_relaxation_of_your_own():
    def uniform(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
        return torch.full_like(keys, k / keys.shape[-1])

    assert khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=uniform).tolist() == [0.5] * 4
    with pytest.raises(InvalidTypeError, match="uniform has none"):
        khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=uniform, ordered=True)
    with pytest.raises(InvalidTypeError, match="ordered"):
        khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=khot.capped_simplex, ordered=True)
    partial = functools.partial(khot.softsort)
    assert khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=partial, ordered=True).shape == (2, 4)
    anything = lambda keys, k, t, **options: khot.softsort(keys, k, t, **options)  # noqa: E731
    assert khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=anything, ordered=True).shape == (2, 4)
    with pytest.raises(InvalidTypeError, match="ordered"):
        khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=torch.softmax, ordered=True)
    with pytest.raises(InvalidValueError, match="returned NaN"):
        khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=lambda keys, k, t: keys * torch.nan)
    with pytest.raises(InvalidValueError, match=r"must return shape \(4,\), but got \(2,\)"):
        khot.sample_subset(torch.zeros(4), 2, 1.0, relaxation=lambda keys, k, t: keys[:2])


def test_gradient_in_the_temperature():
    temperature = torch.tensor(0.5, dtype=F64, requires_grad=True)
    sample = khot.sample_subset(torch.zeros(5, dtype=F64), 2, temperature, generator=seeded())
    (sample * torch.arange(5)).sum().backward()
    assert temperature.grad.abs() > 0


def test_compiled_samples_of_another_number_of_rows():
    compiled = torch.compile(khot.sample_subset, backend="aot_eager")
    for rows in (3, 4, 5):
        assert torch.allclose(compiled(torch.randn(rows, 50), 5, 0.5).sum(-1), torch.tensor(5.0))
