"""`sample_indices`, and the sampler for data loaders."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats
from torch.utils.data import DataLoader, TensorDataset

from khot.errors import InvalidTypeError, InvalidValueError
from khot.reservoir import Reservoir, sample_indices
from khot.reservoir.torch import WeightedSampler
from tests.reservoir.test_reservoir import ALPHA, law

WEIGHTS = np.array([0.5, 3.0, 0.0, 1.0, 0.25, 2.0, 1.0, 4.0, 0.5])


def epoch(ranks: int, number: int = 0, samples: int | None = None) -> list[list[int]]:
    samplers = [WeightedSampler(WEIGHTS, samples, seed=1, rank=rank, num_replicas=ranks) for rank in range(ranks)]
    for sampler in samplers:
        sampler.set_epoch(number)
    return [list(sampler) for sampler in samplers]


def test_indices_are_those_of_a_reservoir():
    reservoir = Reservoir(4, seed=9)
    reservoir.extend(None, WEIGHTS)
    assert sample_indices(WEIGHTS, 4, 9).tolist() == reservoir.sample()
    assert sample_indices(WEIGHTS, 2, 9).tolist() == reservoir.sample()[:2]
    with np.errstate(divide="ignore"):
        assert sample_indices(None, 4, 9, log_weights=np.log(WEIGHTS)).tolist() == reservoir.sample()


def test_too_many_indices_are_refused():
    with pytest.raises(InvalidValueError, match="positive weights, 8, but got 9"):
        sample_indices(WEIGHTS, 9)
    assert len(sample_indices(WEIGHTS, 8)) == 8


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("samples", [None, 7, 4])
def test_ranks_are_disjoint_equally_long_and_together_one_draw(ranks: int, samples: int | None):
    shares = epoch(ranks, 3, samples)
    (whole,) = epoch(1, 3, samples)
    assert {len(share) for share in shares} == {(samples or 8) // ranks}
    together = [index for draws in zip(*shares, strict=True) for index in draws]
    assert together == whole[: len(together)]
    assert len({*together}) == len(together)
    assert 2 not in together


def test_epochs_differ_and_follow_the_law():
    weights, counts = np.array([1.0, 2.0, 4.0]), dict.fromkeys(law(np.array([1.0, 2.0, 4.0]), 2), 0)
    sampler = WeightedSampler(weights, 2, seed=0)
    for number in range(5000):
        sampler.set_epoch(number)
        counts[tuple(sampler)] += 1
    expected = [5000 * chance for chance in law(weights, 2).values()]
    assert stats.chisquare(list(counts.values()), expected).pvalue > ALPHA


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_pass_goes_on_where_it_was(ranks: int):
    for rank in range(ranks):
        sampler = WeightedSampler(WEIGHTS, seed=1, rank=rank, num_replicas=ranks)
        sampler.set_epoch(2)
        iterator = iter(sampler)
        first = [next(iterator) for _ in range(3)]
        other = WeightedSampler(WEIGHTS, seed=1, rank=rank, num_replicas=ranks)
        other.load_state_dict(sampler.state_dict())
        assert first + list(other) == epoch(ranks, 2)[rank]
        assert list(other) == epoch(ranks, 2)[rank]  # the next pass is whole again


def test_a_loader_with_workers_goes_on_after_the_batches_that_were_used():
    data = TensorDataset(torch.arange(9))
    sampler = WeightedSampler(WEIGHTS, seed=1)
    loader = DataLoader(data, batch_size=2, sampler=sampler, num_workers=1)
    batches = iter(loader)
    used = [*next(batches)[0].tolist(), *next(batches)[0].tolist()]
    other = WeightedSampler(WEIGHTS, seed=1)
    other.load_state_dict(sampler.state_dict(taken=4))
    del batches
    assert used + [index for (batch,) in DataLoader(data, 2, sampler=other) for index in batch.tolist()] == epoch(1)[0]


def test_states_of_other_samplers_are_refused():
    state = WeightedSampler(WEIGHTS, seed=1).state_dict()
    with pytest.raises(InvalidValueError, match="seed=2 and num_samples=8, but got seed=1"):
        WeightedSampler(WEIGHTS, seed=2).load_state_dict(state)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 1}, "go together"),
        ({"rank": 2, "num_replicas": 2}, "below num_replicas"),
        ({"num_samples": 9}, "positive weights, 8"),
        ({"num_samples": -1}, "at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_bad_arguments(arguments: dict, message: str):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        WeightedSampler(WEIGHTS, **arguments)


def test_torch_is_not_loaded():
    code = "import sys; from khot.reservoir import sample_indices; sample_indices([1.0, 2.0], 1); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()
