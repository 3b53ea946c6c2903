import numpy as np
import pytest

from khot.datasets import Rows, split
from khot.errors import InvalidTypeError, InvalidValueError

N = 16_242
LABELS = np.repeat([0, 1, 2, 3], [4605, 3519, 2657, 5461])
ROWS = Rows(np.arange(N)[:, None], LABELS, np.arange(N))


def test_parts_are_disjoint_and_complete():
    train, test = split(ROWS, test_rows=1242, random_state=0)
    assert (len(train), len(test)) == (15_000, 1242)
    assert sorted([*train.ids, *test.ids]) == list(range(N))


@pytest.mark.parametrize("stratified", [False, True])
def test_rows_stay_together_and_in_order(stratified: bool):
    for part in split(ROWS, 1242, 3, stratified):
        assert np.all(np.diff(part.ids) > 0)
        np.testing.assert_array_equal(part.inputs[:, 0], part.ids)
        np.testing.assert_array_equal(part.labels, LABELS[part.ids])


def test_a_seed_fixes_the_parts():
    tests = [split(ROWS, 1242, seed)[1].ids for seed in range(5)]
    np.testing.assert_array_equal(split(ROWS, 1242, 4)[1].ids, tests[4])
    for one in range(5):
        for other in range(one):
            common = len(np.intersect1d(tests[one], tests[other]))
            assert 50 < common < 150  # the expected number is 95


def test_a_seed_means_the_same_rows_in_every_version():
    permutation = np.random.RandomState(7).permutation(N)
    np.testing.assert_array_equal(split(ROWS, 1242, 7)[1].ids, np.sort(permutation[:1242]))


def test_stratified_parts_have_equal_shares():
    _, test = split(ROWS, 1242, 0, stratified=True)
    np.testing.assert_allclose(np.bincount(test.labels), np.bincount(LABELS) * 1242 / N, atol=1)
    _, test = split(ROWS, 1242, 0)
    assert np.abs(np.bincount(test.labels) - np.bincount(LABELS) * 1242 / N).max() > 1


def test_the_parts_are_copies():
    rows = Rows(np.zeros((4, 1)), np.array([0, 0, 1, 1]), np.arange(4))
    for part in split(rows, 2, 0):
        part.inputs[:] = 1
    assert rows.inputs.sum() == 0


@pytest.mark.parametrize("size", [0, -1, N, N + 1])
def test_a_size_out_of_range(size: int):
    with pytest.raises(InvalidValueError, match=f"test_rows must lie between 1 and {N - 1}, but got {size}"):
        split(ROWS, size, 0)
    for good in (1, N - 1):
        assert len(split(ROWS, good, 0)[1]) == good


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range(seed: int):
    with pytest.raises(InvalidValueError, match=f"random_state must lie between 0 and {2**32 - 1}, but got {seed}"):
        split(ROWS, 10, seed)
    for good in (0, 2**32 - 1):
        assert len(split(ROWS, 10, good)[1]) == 10


@pytest.mark.parametrize("bad", [0.5, "1", None])
def test_only_whole_numbers(bad: object):
    with pytest.raises(InvalidTypeError, match="test_rows must be an int"):
        split(ROWS, bad, 0)
    with pytest.raises(InvalidTypeError, match="random_state must be an int"):
        split(ROWS, 10, bad)
    assert len(split(ROWS, np.int32(10), np.int64(1))[1]) == 10


def test_too_few_rows_to_stratify():
    with pytest.raises(InvalidValueError, match=r"rows cannot be stratified \(.*\): use stratified=False"):
        split(ROWS, 3, 0, stratified=True)
    assert len(split(ROWS, 4, 0, stratified=True)[1]) == len(split(ROWS, 3, 0)[1]) + 1
