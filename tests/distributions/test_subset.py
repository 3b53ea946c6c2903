import itertools
import math

import pytest
import torch
from scipy import stats
from torch.distributions import OneHotCategorical, kl_divergence

import khot
from khot import Subset
from khot.distributions import _race
from khot.errors import InvalidTypeError, InvalidValueError, NotAvailableError
from tests import oracles

F64 = torch.float64
INF = torch.inf
ALPHA = 1e-3


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_weights(n: int, scale: float, seed: int = 0) -> torch.Tensor:
    return (scale * torch.randn(n, generator=seeded(seed), dtype=F64)).exp()


SMALL = [(n, k) for n in (1, 2, 4, 6) for k in range(n + 1)] + [(8, 3), (8, 5)]


@pytest.mark.parametrize(("n", "k"), SMALL)
@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
def test_log_prob_equals_the_sum_over_all_orders(n: int, k: int, scale: float):
    weights = random_weights(n, scale)
    law = Subset(weights.log(), k)
    table = oracles.subset_probabilities(weights.tolist(), k)
    indices = torch.tensor(list(table)).reshape(len(table), k).long()
    expected = torch.tensor(list(table.values()), dtype=F64)
    torch.testing.assert_close(law.log_prob_indices(indices).exp(), expected, rtol=1e-9, atol=0)
    khots = torch.zeros(len(table), n, dtype=F64).scatter(1, indices, 1)
    assert torch.equal(law.log_prob(khots), law.log_prob_indices(indices))
    assert law.log_prob(law.enumerate_support()).exp().sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), SMALL)
@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
def test_inclusion_probabilities_equal_enumeration(n: int, k: int, scale: float):
    weights = random_weights(n, scale, seed=1)
    probs = Subset(weights.log(), k).inclusion_probs
    torch.testing.assert_close(probs, oracles.inclusion(weights.tolist(), k), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(1000, 50), (1000, 500), (100, 99), (2000, 1)])
def test_large_problems_agree_with_a_halved_step(monkeypatch: pytest.MonkeyPatch, n: int, k: int):
    logits = torch.randn(n, generator=seeded(), dtype=F64)
    law = Subset(logits, k)
    value = law.sample(generator=seeded(1))
    log_p, nodes = law.log_prob(value), _race._nodes
    monkeypatch.setattr(_race, "_nodes", lambda start, end, intervals: nodes(start, end, 2 * intervals))
    torch.testing.assert_close(law.log_prob(value), log_p, rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [5, 30, 100, 1000, 10_000])
@pytest.mark.parametrize("log_rest", [-6.0, -1.8, 0.0, 3.0])
def test_equal_members_against_one_other_have_a_closed_form(k: int, log_rest: float):
    """p = Gamma(r + 1) Gamma(k + 1) / Gamma(r + k + 1) for k items of weight 1 and one of weight r."""
    logits = torch.zeros(k + 1, dtype=F64)
    logits[-1] = log_rest
    logits.requires_grad_()
    log_p = Subset(logits, k).log_prob_indices(torch.arange(k))
    r = torch.tensor(math.exp(log_rest), dtype=F64, requires_grad=True)
    expected = torch.lgamma(r + 1) + math.lgamma(k + 1) - torch.lgamma(r + k + 1)
    assert log_p.item() == pytest.approx(expected.item(), abs=1e-9)
    log_p.backward()
    expected.backward()
    assert logits.grad[-1].item() == pytest.approx((r.grad * r).item(), abs=1e-8)


def test_gradients_at_hopeless_items():
    """The lowest float32 number, often used as a mask instead of -inf, has the gradient of any item far below."""
    logits = torch.tensor([[0.0, 1.0, 2.0, torch.finfo(torch.float32).min], [0.0, 1.0, 2.0, -500.0]], dtype=F64)
    logits.requires_grad_()
    Subset(logits, 2).log_prob_indices(torch.tensor([0, 3])).sum().backward()
    torch.testing.assert_close(logits.grad[0], logits.grad[1])


def test_a_common_offset_of_the_logits_changes_nothing():
    logits = torch.tensor([0.5, 0.25, 0.125, 0.0], dtype=F64)
    for offset in (1e6, 1e9):
        for law in (Subset, khot.OrderedSubset):
            shifted = law(logits + offset, 2).log_prob(law(logits, 2).mode)
            torch.testing.assert_close(shifted, law(logits, 2).log_prob(law(logits, 2).mode), rtol=0, atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8, -1e8])
def test_samples_of_large_float32_logits_are_not_biased(offset: float):
    logits, count = torch.full((4,), offset), 20_000
    for samples in (
        Subset(logits, 2).sample((count,), generator=seeded()),
        khot.sample_subset(logits, 2, 1.0, hard=True, sample_shape=(count,), generator=seeded()),
    ):
        outcomes = Subset(logits, 2).enumerate_support()
        observed = (samples.unsqueeze(1) == outcomes).all(-1).sum(0)
        assert stats.chisquare(observed.numpy()).pvalue > ALPHA


@pytest.mark.parametrize(("n", "k"), [(1000, 50), (300, 150), (100, 99), (5000, 3)])
def test_inclusion_probabilities_sum_to_k(n: int, k: int):
    probs = Subset(2 * torch.randn(2, n, generator=seeded(), dtype=F64), k).inclusion_probs
    assert (probs.sum(-1) - k).abs().max() < 1e-9
    assert ((probs >= 0) & (probs <= 1)).all()


def test_inclusion_probabilities_match_samples():
    law = Subset(torch.randn(30, generator=seeded(), dtype=F64), 8)
    count = 20_000
    observed = law.sample((count,), generator=seeded(1)).mean(0)
    z = (observed - law.mean) / (law.variance / count).sqrt()
    assert z.abs().max() < stats.norm.ppf(1 - ALPHA / 60)


def test_gradients_of_log_prob():
    logits = torch.randn(3, 7, generator=seeded(), dtype=F64, requires_grad=True)
    value = Subset(logits, 3).sample(generator=seeded(1))
    assert torch.autograd.gradcheck(lambda x: Subset(x, 3).log_prob(value), logits)
    assert torch.autograd.gradgradcheck(lambda x: Subset(x, 3).log_prob(value), logits)
    large = torch.randn(1000, generator=seeded(), dtype=F64, requires_grad=True)
    law = Subset(large, 50)
    law.log_prob(law.sample(generator=seeded(2))).backward()
    assert abs(large.grad.sum().item()) < 1e-10  # a common factor of all weights changes nothing


def test_gradients_of_inclusion_probabilities():
    logits = torch.randn(2, 6, generator=seeded(), dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Subset(x, 3).inclusion_probs, logits)
    probs = Subset(logits, 3).inclusion_probs
    (grad,) = torch.autograd.grad(probs[:, 0].square().sum(), logits, create_graph=True)
    assert grad.sum(-1).abs().max() < 1e-10
    with pytest.raises(NotAvailableError, match="twice"):
        grad.square().sum().backward()


def test_large_inclusion_problems_are_cut_in_pieces(monkeypatch: pytest.MonkeyPatch):
    logits = torch.randn(3, 9, generator=seeded(), dtype=F64, requires_grad=True)
    whole = Subset(logits, 4).inclusion_probs
    (grad,) = torch.autograd.grad(whole[:, 0].sum(), logits)
    monkeypatch.setattr("khot.distributions._inclusion._MAX_ENTRIES", 100)
    pieces = Subset(logits, 4).inclusion_probs
    torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-14)
    torch.testing.assert_close(torch.autograd.grad(pieces[:, 0].sum(), logits)[0], grad, rtol=0, atol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_samples_follow_the_law(k: int):
    weights, count = [0.05, 0.1, 0.3, 0.55, 1.0], 20_000
    samples = Subset(torch.tensor(weights).log(), k).sample((count,), generator=seeded(k))
    table = oracles.subset_probabilities(weights, k)
    members = samples.nonzero()[:, 1].reshape(count, k)
    observed = [int((members == torch.tensor(subset)).all(-1).sum()) for subset in table]
    expected = torch.tensor(list(table.values()), dtype=F64)
    assert stats.chisquare(observed, (count * expected / expected.sum()).numpy()).pvalue > ALPHA


def test_is_not_the_conditional_poisson_law():
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=F64)
    law = Subset(weights.log(), 2)
    products = torch.stack([weights[i] * weights[j] for i, j in itertools.combinations(range(4), 2)])
    difference = law.log_prob(law.enumerate_support()).exp() - products / products.sum()
    assert difference.abs().sum() / 2 > 0.01


def test_absent_items():
    logits = torch.tensor([[0.0, 1.0, -INF, 2.0], [0.0, -INF, -INF, 3.0]], dtype=F64, requires_grad=True)
    law = Subset(logits, 2)
    log_p = law.log_prob(law.enumerate_support())
    torch.testing.assert_close(log_p.exp().sum(0), torch.ones(2, dtype=F64))
    without = Subset(torch.tensor([0.0, 1.0, 2.0], dtype=F64), 2)
    assert law.log_prob_indices(torch.tensor([0, 3]))[0] == without.log_prob_indices(torch.tensor([0, 2]))
    assert law.log_prob_indices(torch.tensor([0, 2]))[0] == -INF
    assert law.log_prob_indices(torch.tensor([0, 3]))[1] == 0
    torch.testing.assert_close(law.inclusion_probs[0, [0, 1, 3]], without.inclusion_probs)
    assert law.inclusion_probs[1].tolist() == [1, 0, 0, 1]
    (log_p.exp().square().sum() + law.inclusion_probs.square().sum() + law.entropy().sum()).backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[1] == 0).all()
    with pytest.raises(InvalidValueError, match=r"at least k = 3 present items .* one has 2"):
        Subset(logits, 3)


def test_moments_mode_entropy_and_divergence():
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=F64)
    law, other = Subset(weights.log(), 2), Subset(torch.zeros(4, dtype=F64), 2)
    p = torch.tensor(list(oracles.subset_probabilities(weights.tolist(), 2).values()), dtype=F64)
    assert law.entropy().item() == pytest.approx(-(p * p.log()).sum().item(), abs=1e-12)
    assert kl_divergence(law, other).item() == pytest.approx((p * (6 * p).log()).sum().item(), abs=1e-12)
    assert kl_divergence(law, law).item() == pytest.approx(0, abs=1e-14)
    assert law.mode.tolist() == [0, 0, 1, 1]
    torch.testing.assert_close(law.mean, oracles.inclusion(weights.tolist(), 2))
    torch.testing.assert_close(law.variance, law.mean * (1 - law.mean))
    torch.testing.assert_close(law.stddev, law.variance.sqrt())
    batch = kl_divergence(law.expand((3,)), other)
    assert batch.shape == (3,)
    logits = torch.randn(4, dtype=F64, generator=seeded(), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Subset(x, 2).entropy(), logits)
    assert torch.autograd.gradcheck(lambda x: kl_divergence(Subset(x, 2), law), logits)
    nearly = Subset(torch.tensor([0.0, 0.0, 0.0, -800.0], dtype=F64), 2)
    assert kl_divergence(nearly, Subset(torch.tensor([0.0, 0.0, 0.0, -INF], dtype=F64), 2)) == INF
    close = torch.randn(50, 5, generator=seeded())
    assert (
        kl_divergence(Subset(close, 2), Subset(close + 1e-5 * torch.randn(50, 5, generator=seeded(1)), 2)) >= 0
    ).all()
    with pytest.raises(InvalidValueError, match="same n and k"):
        kl_divergence(law, Subset(torch.zeros(4, dtype=F64), 1))


def test_large_supports_are_refused_with_advice():
    law = Subset(torch.zeros(100), 10)
    assert law.support_size == math.comb(100, 10)
    for listing in (law.entropy, law.enumerate_support, lambda: kl_divergence(law, law)):
        with pytest.raises(NotAvailableError, match=r"17,310,309,456,440 of them.*samples instead"):
            listing()


def test_k_1_is_one_hot_categorical():
    logits = torch.randn(5, 6, generator=seeded(), dtype=F64)
    law, categorical = Subset(logits, 1), OneHotCategorical(logits=logits)
    value = categorical.enumerate_support()
    torch.testing.assert_close(law.log_prob(value), categorical.log_prob(value), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(law.mean, categorical.mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(law.entropy(), categorical.entropy(), rtol=1e-12, atol=1e-12)
    assert torch.equal(law.enumerate_support(), value)
    assert torch.equal(law.mode, categorical.mode)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_works_in_float64_inside(dtype: torch.dtype):
    logits = torch.randn(200, generator=seeded()).to(dtype)
    law, exact = Subset(logits, 20), Subset(logits.double(), 20)
    value = law.sample(generator=seeded())
    assert value.dtype == law.log_prob(value).dtype == law.inclusion_probs.dtype == dtype
    assert law.log_prob(value) == exact.log_prob(value).to(dtype)
    assert torch.equal(law.inclusion_probs, exact.inclusion_probs.to(dtype))


def test_extreme_logits():
    logits = torch.tensor([1e4, 0.0, -1e4, 1e300, -1e300], dtype=F64, requires_grad=True)
    log_p = Subset(logits, 2).log_prob_indices(torch.tensor([[0, 3], [1, 2], [2, 4]]))
    assert log_p[0].item() == pytest.approx(0, abs=1e-12)
    assert (log_p[1:] <= -1e4).all()
    assert not log_p.isnan().any()
    log_p.clamp_min(-1e9).sum().backward()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize(("gap", "n", "k"), [(60.0, 40, 20), (50.0, 17, 16), (25.6, 40, 30), (1e5, 30, 29)])
def test_inclusion_probabilities_of_many_wide_gaps(gap: float, n: int, k: int):
    probs = Subset(-gap * torch.arange(n, dtype=F64), k).inclusion_probs
    torch.testing.assert_close(probs, (torch.arange(n) < k).double(), rtol=0, atol=2 * math.exp(-25.6))
    assert probs.sum().item() == pytest.approx(k, abs=1e-9)


@pytest.mark.parametrize("spread", [50.0, 1e3, 1e9, 1e308])
def test_inclusion_probabilities_of_a_wide_spread(spread: float):
    """An item far above or below all others is certainly in or out, and does not disturb those in between."""
    logits = torch.tensor([0.3, spread, -spread, 0.1, -torch.inf, 0.2], dtype=F64, requires_grad=True)
    probs = Subset(logits, 2).inclusion_probs
    expected = torch.zeros(6, dtype=F64)
    expected[[0, 3, 5]] = torch.softmax(logits.detach()[[0, 3, 5]], 0)
    expected[1] = 1
    torch.testing.assert_close(probs, expected, rtol=0, atol=1e-12)
    probs[0].backward()
    assert logits.grad[[0, 3, 5]].sum().abs() < 1e-10
    assert logits.grad.abs().max() > 0.1


@pytest.mark.parametrize("bad", [[1.0, 0, 0, 0], [1.0, 1, 1, 0], [0.5] * 4, [2.0, 0, 0, 0], [1.0, 1.0, 0.0]])
def test_vectors_outside_the_support_are_refused(bad: list):
    law = Subset(torch.zeros(4), 2)
    with pytest.raises(InvalidValueError, match="value must hold k-hot vectors with 2 ones among 4 entries, but got"):
        law.log_prob(torch.tensor(bad))
    assert law.log_prob(torch.tensor([1.0, 1, 0, 0])).item() == pytest.approx(-math.log(6))


@pytest.mark.parametrize(("bad", "good"), [([0, 0], [0, 1]), ([0, 4], [0, 3]), ([-1, 0], [1, 0]), ([0, 1, 2], [0, 1])])
def test_indices_outside_the_support_are_refused(bad: list, good: list):
    law = Subset(torch.zeros(4), 2)
    with pytest.raises(InvalidValueError, match="value must hold 2 different indices below 4, but got"):
        law.log_prob_indices(torch.tensor(bad))
    assert law.log_prob_indices(torch.tensor(good)).item() == pytest.approx(-math.log(6))


def test_a_value_of_the_wrong_type_or_batch_shape_is_refused():
    law, value = Subset(torch.zeros(4), 2), torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0]])
    with pytest.raises(InvalidTypeError, match="but got list"):
        law.log_prob(value.tolist())
    with pytest.raises(InvalidValueError, match=r"but got shape \(2, 4\): reshape it .* broadcasts with \(3, 4\)"):
        law.expand((3,)).log_prob(value)
    assert law.log_prob(value).shape == law.expand((2,)).log_prob(value).shape == (2,)


def test_an_error_shows_the_first_bad_value_only():
    values = torch.zeros(3, 2, 100)
    values[..., :5] = 1
    law = Subset(torch.zeros(100), 5)
    assert law.log_prob(values).shape == (3, 2)
    values[1, 0, 99] = values[2, 1, 98] = 1
    with pytest.raises(InvalidValueError, match=r"0.0\] \(and so on\) at index \(1, 0\): round a relaxed") as caught:
        law.log_prob(values)
    assert len(str(caught.value)) < 400


def test_inclusion_probabilities_stay_within_0_and_1():
    law = Subset(20 * torch.randn(200, 6, generator=seeded(), dtype=F64), 2)
    assert ((law.inclusion_probs >= 0) & (law.inclusion_probs <= 1)).all()
    assert not law.stddev.isnan().any()


def test_empty_batches():
    law = Subset(torch.zeros(0, 4), 2)
    assert law.inclusion_probs.shape == (0, 4)
    assert law.log_prob(law.sample()).shape == (0,)


def test_there_are_no_reparameterised_samples():
    assert Subset(torch.zeros(4), 2).sample().sum() == 2
    with pytest.raises(NotAvailableError, match="use RelaxedSubset"):
        Subset(torch.zeros(4), 2).rsample()


def test_inclusion_probabilities_without_autograd():
    logits = torch.randn(6, generator=seeded(), dtype=F64)
    expected = Subset(logits, 3).inclusion_probs
    with torch.inference_mode():
        assert torch.equal(Subset(logits, 3).inclusion_probs, expected)
    for k in (0, 6):
        leaf = logits.clone().requires_grad_()
        Subset(leaf, k).inclusion_probs.sum().backward()
        assert (leaf.grad == 0).all()


def test_huge_supports_are_counted_without_printing_them():
    with pytest.raises(NotAvailableError, match=r"about 10\^6018 of them"):
        Subset(torch.zeros(20_000), 10_000).entropy()
    with pytest.raises(NotAvailableError, match="for each of 1000 batch rows"):
        Subset(torch.zeros(1000, 20), 3).entropy()
    assert Subset(torch.zeros(100, 20), 3).entropy().shape == (100,)
