import pytest
import torch
from torch.distributions import RelaxedOneHotCategorical

import khot
from khot import RelaxedOrderedSubset, RelaxedSubset
from khot.errors import KhotError, NotAvailableError

F64 = torch.float64


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("relaxation", [khot.successive_softmax, khot.softsort, khot.neuralsort, khot.capped_simplex])
def test_rsample_is_sample_subset(relaxation):
    logits = torch.randn(3, 5, generator=seeded(), dtype=F64, requires_grad=True)
    law = RelaxedSubset(logits, 2, 0.5, relaxation)
    sample = law.rsample((4,), generator=seeded(1))
    assert torch.equal(
        sample, khot.sample_subset(logits, 2, 0.5, relaxation=relaxation, sample_shape=(4,), generator=seeded(1))
    )
    assert law.support.check(sample).all()
    (grad,) = torch.autograd.grad((sample * torch.arange(5)).sum(), logits)
    assert grad.abs().sum() > 0
    assert not law.sample().requires_grad


def test_ordered_rsample():
    law = RelaxedOrderedSubset(torch.zeros(3, 5, dtype=F64), 2, 0.5)
    sample = law.rsample((4,), generator=seeded())
    assert sample.shape == (4, 3, 2, 5) == law._extended_shape((4,))
    assert law.support.check(sample).all()
    with pytest.raises(KhotError, match="ordered"):
        RelaxedOrderedSubset(torch.zeros(5), 2, 0.5, khot.capped_simplex).rsample()
    assert RelaxedOrderedSubset(torch.zeros(5), 2, 0.5, khot.softsort).rsample().shape == (2, 5)


def test_there_is_no_density():
    for law in (RelaxedSubset(torch.zeros(4), 2, 0.5), RelaxedOrderedSubset(torch.zeros(4), 2, 0.5)):
        assert law.has_rsample
        with pytest.raises(NotAvailableError, match="no density"):
            law.log_prob(law.sample())


def test_k_1_is_relaxed_one_hot_categorical_given_the_same_noise(monkeypatch: pytest.MonkeyPatch):
    logits = torch.randn(6, 5, generator=seeded(), dtype=F64)
    uniform = torch.rand(6, 5, generator=seeded(1), dtype=F64)
    monkeypatch.setattr("khot._jit.AVAILABLE", False)  # use torch's own noise
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda *_, **options: 1 - uniform)  # khot builds -log u from 1 - u
    ours = RelaxedSubset(logits, 1, 0.7).rsample()
    monkeypatch.setattr("torch.distributions.relaxed_categorical.clamp_probs", lambda _: uniform)
    theirs = RelaxedOneHotCategorical(torch.tensor(0.7, dtype=F64), logits=logits).rsample()
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_too_few_present_items_are_an_error():
    with pytest.raises(KhotError, match="present items"):
        RelaxedSubset(torch.tensor([0.0, -torch.inf]), 2, 0.5)
    assert RelaxedSubset(torch.tensor([0.0, -torch.inf]), 1, 0.5).rsample().tolist() == [1, 0]
