import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import khot
from khot import gumbel_keys, reservoir_keys

F64 = torch.float64
ALPHA = 1e-3  # of each statistical test; the seeds are fixed


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_noise_is_gumbel():
    keys = gumbel_keys(torch.zeros(50_000, dtype=F64), seeded())
    assert stats.kstest(keys.numpy(), stats.gumbel_r.cdf).pvalue > ALPHA
    tail = keys[keys > 5].numpy()
    beyond = (stats.gumbel_r.cdf(tail) - stats.gumbel_r.cdf(5)) / stats.gumbel_r.sf(5)
    assert stats.kstest(beyond, "uniform").pvalue > ALPHA


def test_logarithms_of_reservoir_keys_are_exponential():
    weight = 2.5
    keys = reservoir_keys(torch.full((50_000,), weight, dtype=F64), seeded(1))
    assert stats.kstest(-keys.numpy() * weight, "expon").pvalue > ALPHA


def test_the_largest_of_a_million_keys_do_not_tie():
    for seed in range(3):
        top = gumbel_keys(torch.zeros(1_000_000), seeded(seed)).topk(50).values
        assert len(top.unique()) == 50


def test_noise_has_more_than_32_random_bits():
    keys = gumbel_keys(torch.zeros(1_000_000, dtype=F64), seeded())
    assert len(keys.unique()) == 1_000_000  # 32 bits would repeat about a hundred times


@given(st.integers(0, 2**31), st.integers(1, 30))
def test_proposition_1_both_keys_rank_alike(seed: int, n: int):
    weights = torch.rand(n, generator=seeded(seed), dtype=F64) * 10 + 1e-3
    gumbel, reservoir = gumbel_keys(weights.log(), seeded(seed)), reservoir_keys(weights, seeded(seed))
    assert torch.equal(gumbel.argsort(), reservoir.argsort())
    torch.testing.assert_close(gumbel, -torch.log(-reservoir), atol=1e-12, rtol=1e-12)


def test_extreme_weights_keep_their_order():
    weights = torch.tensor([1e-300, 1e300, 1.0, 0.0], dtype=F64)
    keys = reservoir_keys(weights.expand(1000, -1), seeded())
    assert keys[:, :3].isfinite().all()
    assert (keys[:, 3] == -torch.inf).all()
    assert (keys.argsort(descending=True) == torch.tensor([1, 2, 0, 3])).all()
    assert torch.equal(keys.argsort(), gumbel_keys(weights.log().expand(1000, -1), seeded()).argsort())


def test_small_positive_weights_are_never_absent():
    for dtype in (torch.float32, torch.float64):
        smallest = torch.full((1000,), torch.finfo(dtype).smallest_normal, dtype=dtype)
        assert reservoir_keys(smallest, seeded()).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_finite_logits_have_finite_keys(dtype: torch.dtype):
    info = torch.finfo(dtype)
    logits = torch.tensor([info.min, -1.0, 0.0, info.smallest_normal, info.max, -torch.inf], dtype=dtype)
    keys = gumbel_keys(logits.expand(10_000, -1), seeded())
    assert keys[:, :5].isfinite().all()
    assert (keys[:, 5] == -torch.inf).all()


def test_a_uniform_of_zero_does_not_make_an_infinite_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "rand", lambda shape, **options: torch.zeros(shape, dtype=F64))
    assert gumbel_keys(torch.zeros(3, dtype=F64)).isfinite().all()
    assert (reservoir_keys(torch.ones(3, dtype=F64)) < 0).all()
    monkeypatch.setattr(torch, "rand", lambda shape, **options: torch.full(shape, 1 - 2.0**-53, dtype=F64))
    assert gumbel_keys(torch.zeros(3, dtype=F64)).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_float32_keys(dtype: torch.dtype):
    logits = torch.zeros(200, 500, dtype=dtype)
    keys = gumbel_keys(logits, seeded())
    assert keys.dtype == reservoir_keys(logits.exp(), seeded()).dtype == torch.float32
    edge = keys.topk(11).values
    assert (edge[:, 9] > edge[:, 10]).all()


def test_same_seed_same_keys_and_default_generator():
    logits = torch.zeros(4, 5)
    assert torch.equal(gumbel_keys(logits, seeded(7)), gumbel_keys(logits, seeded(7)))
    assert not torch.equal(gumbel_keys(logits, seeded(7)), gumbel_keys(logits, seeded(8)))
    torch.manual_seed(3)
    first = gumbel_keys(logits)
    torch.manual_seed(3)
    assert torch.equal(gumbel_keys(logits), first)


@pytest.mark.parametrize("relax", [khot.successive_softmax, khot.neuralsort, khot.softsort, khot.capped_simplex])
def test_absent_weights_have_no_gradient(relax):
    weights = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=F64, requires_grad=True)
    (relax(reservoir_keys(weights, seeded()), 2, 0.5) * torch.arange(4)).sum().backward()
    assert weights.grad.isfinite().all()
    assert weights.grad[0] == 0
    assert weights.grad.abs().sum() > 0


def test_keys_are_differentiable():
    logits = torch.zeros(3, dtype=F64, requires_grad=True)
    gumbel_keys(logits, seeded()).sum().backward()
    assert logits.grad.tolist() == [1, 1, 1]
    weights = torch.tensor([0.5, 1.0, 2.0], dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: reservoir_keys(w, seeded()), weights)
