import copy
import pickle

import pytest
import torch

import khot
from khot import schedules
from khot.errors import KhotError
from khot.nn import SubsetSampler


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_samples_in_training_and_takes_the_top_k_in_eval():
    logits = torch.randn(7, 9, generator=seeded(), requires_grad=True)
    layer = SubsetSampler(3, 0.5)
    assert torch.equal(layer(logits, generator=seeded()), khot.sample_subset(logits, 3, 0.5, generator=seeded()))
    layer.eval()
    assert torch.equal(layer(logits), khot.hard_topk(logits, 3))


def test_hard_and_other_relaxations():
    logits = torch.zeros(5, 6, requires_grad=True)
    sample = SubsetSampler(2, 0.5, relaxation=khot.capped_simplex, hard=True)(logits, generator=seeded())
    assert (sample.detach().unique() == torch.tensor([0.0, 1.0])).all()
    (sample * torch.arange(6)).sum().backward()
    assert logits.grad.abs().sum() > 0


def test_temperature_follows_the_schedule():
    layer = SubsetSampler(2, schedules.Linear(2.0, 1.0, steps=10))
    assert layer.temperature == 2.0
    assert layer.anneal(5) == layer.temperature == 1.5
    logits = torch.zeros(6)
    assert torch.equal(layer(logits, generator=seeded()), khot.sample_subset(logits, 2, 1.5, generator=seeded()))
    assert SubsetSampler(2, lambda step: 1 / (1 + step)).anneal(3) == 0.25
    with pytest.raises(KhotError, match="temperature must be positive"):
        SubsetSampler(2, lambda step: 1.0 - step).anneal(1)
    assert SubsetSampler(2, lambda step: 1.0 - 0.5 * step).anneal(1) == 0.5


def test_schedules():
    assert [schedules.Linear(3.0, 1.0, 4)(s) for s in (-1, 0, 2, 4, 9)] == [3.0, 3.0, 2.0, 1.0, 1.0]
    assert [schedules.Exponential(4.0, 1.0, 2)(s) for s in (0, 1, 2, 5)] == [4.0, 2.0, 1.0, 1.0]
    assert schedules.Constant(0.3)(10**9) == 0.3


@pytest.mark.parametrize("name", ["Linear", "Exponential"])
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ((0.0, 1.0, 5), (0.1, 1.0, 5)),
        ((1.0, -1.0, 5), (1.0, 1e-9, 5)),
        ((1, 1, 0), (1, 1, 1)),
        ((1, 1, 2.0), (1, 1, 2)),
    ],
)
def test_bad_schedules(name: str, bad: tuple, good: tuple):
    schedule = getattr(schedules, name)
    with pytest.raises(KhotError, match="must be"):
        schedule(*bad)
    assert schedule(*good)(10**9) == good[1]


def test_bad_constant_schedule():
    with pytest.raises(KhotError, match="value must be positive"):
        schedules.Constant(0.0)
    assert schedules.Constant(1e-9)(0) == 1e-9


def test_repr_shows_all_and_the_layer_copies_and_pickles():
    layer = SubsetSampler(4, schedules.Exponential(2.0, 0.1, steps=100), relaxation=khot.softsort, hard=True)
    layer.anneal(100)
    text = repr(layer)
    for part in ("k=4", "temperature=0.1", "Exponential(start=2.0, end=0.1, steps=100)", "softsort", "hard=True"):
        assert part in text
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(twin) == text
    assert layer.state_dict() == {}
