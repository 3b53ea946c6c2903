import itertools
import math

import pytest
import torch
from scipy import stats
from torch.distributions import Categorical, kl_divergence

from khot import OrderedSubset, Subset
from khot.errors import InvalidValueError, NotAvailableError
from tests import oracles

F64 = torch.float64
INF = torch.inf
ALPHA = 1e-3


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (4, 0), (4, 2), (5, 5), (6, 3)])
@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
def test_log_prob_is_equation_1(n: int, k: int, scale: float):
    weights = (scale * torch.randn(n, generator=seeded(), dtype=F64)).exp()
    law = OrderedSubset(weights.log(), k)
    expected = [float(oracles.ordered_probability(weights.tolist(), s)) for s in itertools.permutations(range(n), k)]
    log_p = law.log_prob(law.enumerate_support())
    torch.testing.assert_close(log_p.exp(), torch.tensor(expected, dtype=F64), rtol=1e-12, atol=0)


def test_the_set_sums_its_orders():
    logits = torch.randn(7, generator=seeded(), dtype=F64)
    ordered = OrderedSubset(logits, 4).log_prob(torch.tensor(list(itertools.permutations([6, 1, 4, 2]))))
    total = Subset(logits, 4).log_prob_indices(torch.tensor([6, 1, 4, 2]))
    torch.testing.assert_close(ordered.logsumexp(0), total, rtol=1e-12, atol=1e-12)


def test_samples_follow_the_law():
    weights, count = [0.1, 0.3, 0.6, 1.0], 20_000
    law = OrderedSubset(torch.tensor(weights).log(), 2)
    samples = law.sample((count,), generator=seeded())
    assert samples.dtype == torch.int64
    outcomes = law.enumerate_support()
    observed = (samples.unsqueeze(1) == outcomes).all(-1).sum(0)
    expected = torch.tensor([float(oracles.ordered_probability(weights, s.tolist())) for s in outcomes], dtype=F64)
    assert stats.chisquare(observed.numpy(), (count * expected / expected.sum()).numpy()).pvalue > ALPHA


def test_gradients():
    logits = torch.randn(3, 6, generator=seeded(), dtype=F64, requires_grad=True)
    for k in (1, 3, 6):
        value = OrderedSubset(logits, k).sample(generator=seeded(1))
        assert torch.autograd.gradcheck(lambda x, k=k, value=value: OrderedSubset(x, k).log_prob(value), logits)
    long = torch.randn(1000, generator=seeded(), dtype=F64, requires_grad=True)
    law = OrderedSubset(long, 300)
    law.log_prob(law.sample(generator=seeded())).backward()
    assert abs(long.grad.sum().item()) < 1e-10


def test_absent_items():
    logits = torch.tensor([0.0, -INF, 1.0, -INF], dtype=F64, requires_grad=True)
    law = OrderedSubset(logits, 2)
    log_p = law.log_prob(torch.tensor([[2, 0], [0, 2], [0, 1], [3, 1]]))
    assert (log_p[2:] == -INF).all()
    torch.testing.assert_close(log_p[:2].exp().sum(), torch.tensor(1.0, dtype=F64))
    (log_p.exp().square().sum() + law.entropy()).backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[[1, 3]] == 0).all()
    with pytest.raises(InvalidValueError, match="present items"):
        OrderedSubset(logits, 3)


def test_mode_entropy_divergence_and_k_1():
    logits = torch.randn(5, generator=seeded(), dtype=F64)
    law = OrderedSubset(logits, 3)
    support = law.enumerate_support()
    assert support.shape == (math.perm(5, 3), 3)
    assert support[law.log_prob(support).argmax()].tolist() == law.mode.tolist()
    p = law.log_prob(support).exp()
    torch.testing.assert_close(law.entropy(), -(p * p.log()).sum())
    uniform = OrderedSubset(torch.zeros(5, dtype=F64), 3)
    torch.testing.assert_close(kl_divergence(law, uniform), math.log(60) - law.entropy())
    one, categorical = OrderedSubset(logits, 1), Categorical(logits=logits)
    value = torch.arange(5)
    torch.testing.assert_close(one.log_prob(value.unsqueeze(-1)), categorical.log_prob(value))
    torch.testing.assert_close(one.entropy(), categorical.entropy())
    with pytest.raises(NotAvailableError, match="samples instead"):
        OrderedSubset(torch.zeros(50), 5).entropy()


@pytest.mark.parametrize(
    ("bad", "good"),
    [([1, 1], [1, 2]), ([0, 4], [0, 3]), ([-1, 2], [0, 2]), ([0.5, 1.0], [0.0, 1.0]), ([0, 1, 2], [0, 1])],
)
def test_values_outside_the_support_are_refused(bad: list, good: list):
    law = OrderedSubset(torch.zeros(2, 4), 2)
    with pytest.raises(InvalidValueError, match="value must hold 2 different indices below 4, but got"):
        law.log_prob(torch.tensor(bad))
    torch.testing.assert_close(law.log_prob(torch.tensor(good)), torch.full((2,), -math.log(12)))
