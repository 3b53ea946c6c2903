"""The contract of `torch.distributions`, which all four distributions keep."""

import pytest
import torch
from torch.distributions import Distribution, Independent

import khot

LAWS = {
    "Subset": (lambda logits, **options: khot.Subset(logits, 2, **options), (5,)),
    "OrderedSubset": (lambda logits, **options: khot.OrderedSubset(logits, 2, **options), (2,)),
    "RelaxedSubset": (lambda logits, **options: khot.RelaxedSubset(logits, 2, 0.5, **options), (5,)),
    "RelaxedOrderedSubset": (lambda logits, **options: khot.RelaxedOrderedSubset(logits, 2, 0.5, **options), (2, 5)),
}
all_laws = pytest.mark.parametrize(("make", "event"), LAWS.values(), ids=LAWS.keys())


@all_laws
@pytest.mark.parametrize("batch", [(), (3,), (4, 1)])
@pytest.mark.parametrize("sample_shape", [(), (2,), (3, 2)])
def test_shapes(make, event: tuple, batch: tuple, sample_shape: tuple):
    law = make(torch.randn(*batch, 5))
    assert isinstance(law, Distribution)
    assert (law.batch_shape, law.event_shape) == (batch, event)
    sample = law.sample(torch.Size(sample_shape))
    assert sample.shape == (*sample_shape, *batch, *event)
    assert law.support.check(sample).all()
    assert law.support.event_dim == len(event)
    if not law.has_rsample:
        assert law.log_prob(sample).shape == (*sample_shape, *batch)


@all_laws
def test_expand(make, event: tuple):
    logits = torch.randn(3, 1, 5)
    law = make(logits).expand((2, 3, 4))
    assert (law.batch_shape, law.event_shape) == ((2, 3, 4), event)
    assert law.sample().shape == (2, 3, 4, *event)
    assert type(law.expand((2, 3, 4))) is type(law)
    if not law.has_rsample:
        value = make(logits).sample()
        wide = law.log_prob(value.unsqueeze(0).expand(2, 3, 4, *event))
        torch.testing.assert_close(wide[1, :, 2], make(logits).log_prob(value).squeeze(-1))


def test_expand_keeps_the_temperature_of_each_row():
    temperature = torch.tensor([0.1, 5.0])
    law = khot.RelaxedOrderedSubset(torch.zeros(2, 5), 2, temperature).expand((3, 2))
    assert law.temperature.tolist() == temperature.expand(3, 2).tolist()
    assert law.rsample().shape == (3, 2, 2, 5)


@all_laws
def test_independent_repr_and_constraints(make, event: tuple):
    assert Independent(make(torch.zeros(3, 5)), 1).event_shape == (3, *event)
    assert repr(make(torch.zeros(3, 5))).endswith("(logits: (3, 5), k: 2)")
    assert make(torch.zeros(5)).arg_constraints["logits"].check(torch.zeros(5))
    with pytest.raises(ValueError, match="must be finite"):
        make(torch.tensor([0.0, torch.nan, 0, 0, 0]))
    assert make(torch.tensor([0.0, -torch.inf, 0, 0, 0])).sample().isfinite().all()


def test_values_are_validated_by_default():
    value, good = torch.tensor([1.0, 1, 1, 0, 0]), torch.tensor([1.0, 1, 0, 0, 0])
    with pytest.raises(ValueError, match="value must hold"):
        khot.Subset(torch.zeros(5), 2).log_prob(value)
    assert khot.Subset(torch.zeros(5), 2, validate_args=False).log_prob(value).isfinite()
    with pytest.raises(ValueError, match="value must hold"):
        khot.Subset(torch.zeros(3, 5), 2).expand((2, 3)).log_prob(value)
    assert khot.Subset(torch.zeros(3, 5), 2).expand((2, 3)).log_prob(good).shape == (2, 3)


@all_laws
def test_generator_fixes_the_sample(make, event: tuple):
    law = make(torch.zeros(4, 5))
    first = law.sample((3,), generator=torch.Generator().manual_seed(1))
    assert torch.equal(law.sample((3,), generator=torch.Generator().manual_seed(1)), first)


def test_subset_enumerates_with_and_without_expansion():
    law = khot.Subset(torch.zeros(3, 5), 2)
    assert law.enumerate_support().shape == (10, 3, 5)
    assert law.enumerate_support(expand=False).shape == (10, 1, 5)
    assert law.has_enumerate_support
    assert khot.OrderedSubset(torch.zeros(3, 5), 2).enumerate_support(expand=False).shape == (20, 1, 2)
