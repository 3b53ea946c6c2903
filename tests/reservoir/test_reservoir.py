"""The reservoir: its law, and the same sample however the rows are divided."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from khot.errors import DataFileError, InvalidTypeError, InvalidValueError
from khot.reservoir import Reservoir
from khot.reservoir import _seeds as seeds
from khot.reservoir._compiled import select

ALPHA = 1e-4
WEIGHTS = np.array([0.5, 3.0, 1.0, 0.25, 2.0, 1.0])
DRAWS = 20_000


def law(weights: np.ndarray, k: int) -> dict[tuple[int, ...], float]:
    """Chance of each sequence of draws without replacement."""
    table = {}
    for order in itertools.permutations(range(len(weights)), k):
        left, chance = weights.sum(), 1.0
        for i in order:
            chance, left = chance * weights[i] / left, left - weights[i]
        table[order] = chance
    return table


def added(seed: int) -> Reservoir:
    reservoir = Reservoir(3, seed)
    for i, weight in enumerate(WEIGHTS):
        reservoir.add(i, weight)
    return reservoir


def extended(seed: int) -> Reservoir:
    reservoir = Reservoir(3, seed)
    reservoir.extend(None, WEIGHTS)
    return reservoir


def merged(seed: int) -> Reservoir:
    parts = [Reservoir(3, seed, start=start) for start in (0, 1, 4)]
    for part, stop in zip(parts, (1, 4, 6), strict=True):
        part.extend(None, log_weights=np.log(WEIGHTS[part._state.following : stop]))
    return parts[1].merge(parts[2], parts[0])


@pytest.mark.parametrize("make", [added, extended, merged])
def test_samples_follow_the_law_of_draws_without_replacement(make):
    table = law(WEIGHTS, 3)
    counts = dict.fromkeys(table, 0)
    for seed in range(DRAWS):
        counts[tuple(make(seed).sample())] += 1
    expected = [DRAWS * chance for chance in table.values()]
    assert stats.chisquare(list(counts.values()), expected).pvalue > ALPHA


def test_rows_of_one_table_follow_the_law_too():
    """200,000 groups of six rows under one seed: rows of a table are as independent as seeds are."""
    groups = 200_000
    _, scores, _ = select(seeds.key(0), 0, np.tile(WEIGHTS, groups), False, math.inf)
    order = scores.reshape(groups, 6).argsort(1)[:, :3]
    table = law(WEIGHTS, 3)
    names = {name: place for place, name in enumerate(table)}
    counts = np.bincount([names[tuple(row)] for row in order.tolist()], minlength=len(table))
    assert stats.chisquare(counts, [groups * chance for chance in table.values()]).pvalue > ALPHA


@st.composite
def tables(draw):
    weight = st.one_of(st.just(0.0), st.sampled_from([1e-300, 5e-324, 1e300, 1.0]), st.floats(0.0, 1e3))
    weights = np.array(draw(st.lists(weight, max_size=60)), float)
    cuts = sorted(draw(st.lists(st.integers(0, len(weights)), max_size=5)))
    bounds = [0, *cuts, len(weights)]
    parts = draw(st.permutations([*itertools.pairwise(bounds)]))
    return weights, parts, draw(st.integers(0, 70)), draw(st.integers(0, 2**64)), draw(st.integers(0, 2000))


@settings(max_examples=150, deadline=None)
@given(tables())
def test_any_division_and_any_order_give_the_same_sample(table):
    weights, parts, k, seed, start = table
    whole = Reservoir(k, seed, start=start)
    whole.extend(range(start, start + len(weights)), weights)
    pieces = []
    for first, stop in parts:
        piece = Reservoir(k, seed, start=start + first)
        middle = (first + stop) // 2
        for number in range(first, middle):
            piece.add(start + number, weights[number])
        piece.extend(iter(range(start + middle, start + stop)), iter(weights[middle:stop].tolist()))
        pieces.append(Reservoir.from_bytes(piece.to_bytes()))
    together = pieces[0].merge(*pieces[1:])
    assert together.sample() == whole.sample()
    assert together.seen == whole.seen == len(weights)
    assert together.threshold == whole.threshold
    assert (together.weights == whole.weights).all()
    assert together.to_bytes() == whole.to_bytes()
    assert len(whole.sample()) == min(k, (weights > 0).sum())


def test_a_long_table_has_the_sample_of_its_scores():
    weights = np.random.default_rng(0).gamma(0.3, size=700_000)
    _, scores, _ = select(seeds.key(5), 0, weights, False, math.inf)
    for k in (0, 1, 1000, 300_000):
        reservoir = Reservoir(k, seed=5)
        reservoir.extend(None, weights)
        assert (reservoir.ids == np.lexsort((np.arange(len(scores)), scores))[:k]).all()


def test_scores_are_those_of_the_formula():
    mp.mp.dps = 40
    rows = np.arange(300)
    weights = np.random.default_rng(1).choice([1e-300, 0.1, 1.0, 7.0, 1e300], 300)
    places, scores, _ = select((3, 4), 1000, weights, False, math.inf)
    assert (places == rows).all()
    for number, weight, score in zip(rows, weights, scores, strict=True):
        word = int(words((3, 4), 1000 + int(number)))
        u = (mp.mpf(word) + 0.5) / 2**64
        exact = mp.log(-mp.log(1 - u)) - mp.log(mp.mpf(float(weight)))
        assert abs(score - exact) <= 4e-16 * (1 + abs(exact)) + 1e-15


def words(key: tuple[int, int], number: int) -> int:
    """The random word of a row: Threefry-2x64 with 13 rounds of its place in its group of 512."""
    mask, (k0, k1) = 2**64 - 1, key
    schedule = (k0, k1, 0x1BD11BDAA9FC1A22 ^ k0 ^ k1)
    group, lane = divmod(number, 512)
    x = [(256 * group + lane % 256 + k0) & mask, k1]
    for r in range(13):
        shift = (16, 42, 12, 31, 16, 32, 24, 21)[r % 8]
        x[0] = (x[0] + x[1]) & mask
        x[1] = (((x[1] << shift) | (x[1] >> (64 - shift))) & mask) ^ x[0]
        if r % 4 == 3:
            i = (r + 1) // 4
            x = [(x[0] + schedule[i % 3]) & mask, (x[1] + schedule[(i + 1) % 3] + i) & mask]
    return x[lane // 256]


def test_golden_samples():
    """They must never change: a seed means the same sample in every version, on every processor."""
    reservoir = Reservoir(5, seed=2019)
    reservoir.extend(None, np.arange(1, 1001) / 7)
    assert reservoir.ids.tolist() == GOLDEN_IDS
    assert reservoir._best().scores.tolist() == [float.fromhex(x) for x in GOLDEN_SCORES]


GOLDEN_IDS = [889, 589, 403, 492, 404]
GOLDEN_SCORES = [
    "-0x1.b9f0f02e57e5ep+3",
    "-0x1.a2b6815416599p+3",
    "-0x1.6f43eebb46e98p+3",
    "-0x1.5ba472755f19ep+3",
    "-0x1.537cd7fcde1b9p+3",
    "-0x1.50a6878d23824p+3",
]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf])
def test_a_bad_weight_is_named_and_changes_nothing(bad: float):
    reservoir = Reservoir(3, 0)
    reservoir.extend(["a", "b"], [1, 2])
    before = reservoir.to_bytes()
    with pytest.raises(InvalidValueError, match=r"row 200002"):
        reservoir.extend(range(300_000), [*[1.0] * 200_000, bad, *[1.0] * 99_999])
    with pytest.raises(InvalidValueError, match="row 2"):
        reservoir.add("c", bad)
    assert reservoir.to_bytes() == before


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_logarithm_of_a_weight_is_named(bad: float):
    reservoir = Reservoir(3, 0)
    reservoir.extend("abc", log_weights=[0.0, -math.inf, -1.0])
    assert sorted(reservoir.sample()) == ["a", "c"]
    with pytest.raises(InvalidValueError, match="row 4"):
        reservoir.extend("de", log_weights=[0.0, bad])


def test_extreme_weights():
    reservoir = Reservoir(3, 0)
    reservoir.extend(["small", "none", "large", "tiny"], [1e-300, 0.0, 1e300, 5e-324])
    assert reservoir.sample() == ["large", "small", "tiny"]
    assert reservoir.threshold == math.inf
    logs = Reservoir(2, 0)
    logs.extend(None, log_weights=[-1e6, 1e6, 0.0])
    assert logs.ids.tolist() == [1, 2]


def test_parts_that_overlap_or_differ_are_refused():
    one, two = Reservoir(2, 0), Reservoir(2, 0, start=1)
    one.extend("ab")
    two.extend("cd")
    with pytest.raises(InvalidValueError, match="rows 1 to 1"):
        one.merge(two)
    with pytest.raises(InvalidValueError, match="k=2, seed=0 and k=2, seed=1"):
        one.merge(Reservoir(2, 1))
    with pytest.raises(InvalidValueError, match="k=3"):
        one.merge(Reservoir(3, 0))
    assert one.seen == 2
    with pytest.raises(InvalidTypeError, match="Reservoir"):
        one.merge(3)  # type: ignore[arg-type]


def test_totals_are_unbiased_within_their_error():
    values, weights = np.array([4.0, -1.0, 2.5, 8.0, 0.5, 3.0, 1.0]), np.array([3.0, 1.0, 2.0, 5.0, 0.2, 2.0, 1.0])
    found, errors = [], []
    for seed in range(10_000):
        reservoir = Reservoir(4, seed)
        reservoir.extend(None, weights)
        estimate, error = reservoir.total(values[reservoir.ids])
        found.append(estimate)
        errors.append(error**2)
    z = (np.mean(found) - values.sum()) / (np.std(found) / 100)
    assert abs(z) < stats.norm.isf(ALPHA / 2)
    assert np.mean(errors) == pytest.approx(np.var(found), rel=0.1)


def test_a_sample_of_all_rows_has_the_exact_total():
    reservoir = Reservoir(10, 0)
    reservoir.extend(["x", "y"], [1.0, 2.0])
    assert reservoir.total([[1.0, 2.0], [3.0, 5.0]]).estimate.tolist() == [4.0, 7.0]
    assert reservoir.total([1.0, 2.0]).standard_error == 0
    with pytest.raises(InvalidValueError, match="2 rows of the sample"):
        reservoir.total([1.0])


def test_bytes():
    reservoir = Reservoir(2, 3)
    reservoir.extend([{"name": "ü"}, [1, 2.5], "c", None], [1, 1, 1, 1])
    data = reservoir.to_bytes()
    assert Reservoir.from_bytes(data).sample() == reservoir.sample()
    with pytest.raises(DataFileError, match="damaged"):
        Reservoir.from_bytes(data[:-3] + b"abc")
    with pytest.raises(DataFileError, match="another version"):
        Reservoir.from_bytes(data.replace(b"reservoir 1", b"reservoir 9", 1))
    with pytest.raises(DataFileError, match="to_bytes"):
        Reservoir.from_bytes(b"something else")
    reservoir.extend([object(), object()])
    reservoir.k = 6
    for _ in range(6):
        reservoir.add(object())
    with pytest.raises(InvalidTypeError, match="items must be texts"):
        reservoir.to_bytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Reservoir(-1), "k must be at least 0"),
        (lambda: Reservoir(2.5), "k must be a whole number"),  # type: ignore[arg-type]
        (lambda: Reservoir(2, "x"), "seed must be a whole number"),  # type: ignore[arg-type]
        (lambda: Reservoir(2, -1), "seed must be at least 0"),
        (lambda: Reservoir(2, start=-1), "start"),
        (lambda: Reservoir(2).extend([1, 2], [1.0]), "equally many"),
        (lambda: Reservoir(2).extend(iter([1, 2]), [1.0]), "equally many"),
        (lambda: Reservoir(2).extend(None), "both None"),
        (lambda: Reservoir(2).extend([1], [1.0], log_weights=[1.0]), "exclude"),
        (lambda: Reservoir(2).extend([1], ["a"]), "weights must be numbers"),
        (lambda: Reservoir(2).extend([1], [[1.0]]), "one axis"),
        (lambda: Reservoir(2).extend(5, [1.0]), "sequences or iterators"),  # type: ignore[arg-type]
        (lambda: Reservoir(2).extend({"a": 1}), "sequences or iterators"),
    ],
)
def test_bad_arguments(call, message: str):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        call()
