"""The counter-based noise: its bits, its laws, its independence, and the keys made of it."""

import numpy as np
import pytest
import torch
from scipy import stats

from khot import gumbel_keys, reservoir_keys
from khot._jit import counter
from khot._jit.counter import LANES
from khot.keys import _compiled as noise
from tests.jit.calling import from_python

F64 = torch.float64
threefry, share_of = from_python(counter.threefry), from_python(noise._share)
exponential_of, exponential32_of = from_python(noise._exponential), from_python(noise._exponential32)
ALPHA = 1e-3  # of each statistical test; the seeds are fixed
KEY = (0x0123456789ABCDEF, 0x0FEDCBA987654321)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def gumbel(size: int, key: tuple[int, int] = KEY, dtype: type = np.float64) -> np.ndarray:
    out = np.full((1, size), np.nan, dtype)
    assert noise.perturb(key, np.zeros_like(out), False, out)
    return out[0]


def exponential(size: int, key: tuple[int, int] = KEY) -> np.ndarray:
    out = np.full(size, np.nan)
    noise.exponential(key, out)
    return out


def standard_errors(x: np.ndarray, y: np.ndarray) -> float:
    """Of independence, that the correlation of two samples is away from 0."""
    return abs(np.corrcoef(x, y)[0, 1]) * len(x) ** 0.5


def test_each_number_is_a_function_of_its_counter():
    numbers, lanes = exponential(5 * LANES), LANES
    key = tuple(np.uint64(word) for word in KEY)
    for i in (0, 1, lanes - 1, lanes, 2 * lanes - 1, 2 * lanes, 3 * lanes + 7, 5 * lanes - 1):
        group, place = divmod(i, 2 * lanes)
        counter = np.uint64(group * lanes + place % lanes)
        word = threefry(*key, counter, np.uint64(0))[place // lanes]
        assert numbers[i] == pytest.approx(-np.log1p(-(int(word) >> 12) * 2.0**-52), rel=1e-15, abs=0)


@pytest.mark.parametrize("word", [0, 2**12 - 1, 2**12, 2**12 * 3, 2**40, 2**63, 2**64 - 2**13, 2**64 - 1])
def test_extreme_words_give_finite_numbers(word: int):
    number = exponential_of(np.uint64(word))
    expected = -np.log1p(-(word >> 12) * 2.0**-52)
    assert number == (pytest.approx(expected, rel=1e-15, abs=0) if expected else 2.0**-54)
    halves = np.uint32(word >> 32), np.uint32(word & (2**32 - 1))
    narrow = exponential32_of(share_of(*halves), share_of(*(~half for half in halves)))
    share, left = max((word >> 2) * 2.0**-62, 2.0**-54), (2**62 - 1 - (word >> 2)) * 2.0**-62
    assert narrow == pytest.approx(-np.log1p(-share) if share < 0.5 else -np.log(left or 2.0**-127), rel=1e-2)
    assert np.isfinite(narrow)


@pytest.mark.usefixtures("restore_threads")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_depend_neither_on_the_threads_nor_on_the_length(dtype: type):
    whole = gumbel(200_001, dtype=dtype)
    assert np.isfinite(whole).all()
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        for size in (0, 1, 255, 256, 257, 511, 512, 513, 100_003, 200_001):
            assert np.array_equal(gumbel(size, dtype=dtype), whole[:size])


@pytest.mark.usefixtures("restore_threads")
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_keys_of_a_seed_do_not_depend_on_the_threads(threads: int):
    expected = gumbel_keys(torch.zeros(300, 1000), seeded())
    torch.set_num_threads(threads)
    assert torch.equal(gumbel_keys(torch.zeros(300, 1000), seeded()), expected)
    assert torch.equal(gumbel_keys(torch.zeros(200, 1000), seeded()), expected[:200])


def test_moments():
    n, variance = 2**20, np.pi**2 / 6
    x = gumbel(n)
    assert abs(x.mean() - np.euler_gamma) <= 5 * (variance / n) ** 0.5
    assert abs(x.var() - variance) <= 5 * variance * (4.4 / n) ** 0.5  # the fourth moment is 5.4 variance**2
    e = exponential(n)
    assert abs(e.mean() - 1) <= 5 * n**-0.5
    assert abs(e.var() - 1) <= 5 * (8 / n) ** 0.5


@pytest.mark.parametrize("key", [(0, 0), (0, 1), (1, 0), KEY, (2**63 - 2, 2**63 - 2)])
def test_laws(key: tuple[int, int]):
    assert stats.kstest(gumbel(200_000, key), stats.gumbel_r.cdf).pvalue > ALPHA
    assert stats.kstest(exponential(200_000, key), stats.expon.cdf).pvalue > ALPHA


@pytest.mark.parametrize("share", [1e-3, 1e-4, 1e-5])
def test_counts_in_the_tails(share: float):
    n = 2**22
    x = gumbel(n, dtype=np.float32)
    for count in ((x > stats.gumbel_r.isf(share)).sum(), (x < stats.gumbel_r.ppf(share)).sum()):
        assert stats.binomtest(int(count), n, share).pvalue > ALPHA


def test_the_largest_of_a_million():
    n = 1_000_000
    largest = np.array([gumbel(n, (3, i)).max() for i in range(40)])
    assert stats.kstest(np.exp(-n * np.exp(-largest)), "uniform").pvalue > ALPHA


def test_the_largest_do_not_tie():
    for seed in range(3):
        keys = gumbel_keys(torch.zeros(2**20, dtype=F64), seeded(seed))
        assert keys.isfinite().all()
        assert len(keys.topk(1000).values.unique()) == 1000


@pytest.mark.parametrize("lag", [1, LANES, 2 * LANES])
def test_numbers_of_one_key_are_independent(lag: int):
    x = gumbel(2**20)
    assert standard_errors(x[:-lag], x[lag:]) < 4
    tenth = np.minimum((stats.gumbel_r.cdf(x) * 10).astype(int), 9)
    first = np.flatnonzero(np.arange(len(x) - lag) // lag % 2 == 0)  # of pairs that do not overlap
    counts = np.bincount(tenth[first] * 10 + tenth[first + lag], minlength=100)
    assert stats.chisquare(counts).pvalue > ALPHA


def test_rows_are_independent():
    rows, n = 32, 8192
    correlations = np.corrcoef(gumbel_keys(torch.zeros(rows, n, dtype=F64), seeded()).numpy())
    squares = n * correlations[np.triu_indices(rows, 1)] ** 2
    assert ALPHA / 2 < stats.chi2.cdf(squares.sum(), len(squares)) < 1 - ALPHA / 2


def test_calls_with_one_generator_are_independent():
    generator, logits = seeded(), torch.zeros(200_000, dtype=F64)
    first, second, third = (gumbel_keys(logits, generator).numpy() for _ in range(3))
    assert len(np.unique([first[0], second[0], third[0]])) == 3
    assert max(standard_errors(first, second), standard_errors(second, third), standard_errors(first, third)) < 4


@pytest.mark.parametrize("neighbour", [(8, 9), (7, 10), (9, 7), (7, 9 + 2**62), (7 + 2**62, 9)])
def test_neighbouring_keys_are_independent(neighbour: tuple[int, int]):
    x, y = gumbel(500_000, (7, 9)), gumbel(500_000, neighbour)
    assert not np.isin(x[:1000], y).any()
    assert standard_errors(x, y) < 4
    assert standard_errors(x[1:], y[:-1]) < 4


def test_a_seed_fixes_the_keys():
    logits = torch.randn(20, 300, generator=seeded(1))
    assert torch.equal(gumbel_keys(logits, seeded(2)), gumbel_keys(logits, seeded(2)))
    assert not torch.equal(gumbel_keys(logits, seeded(2)), gumbel_keys(logits, seeded(3)))
    generator = seeded(2)
    assert not torch.equal(gumbel_keys(logits, generator), gumbel_keys(logits, generator))


def test_float32_noise_is_that_of_float64():
    wide, narrow = (gumbel_keys(torch.zeros(1_000_000, dtype=dtype), seeded()) for dtype in (F64, torch.float32))
    assert ((narrow - wide).abs() <= 2.0**-21 * wide.abs().clamp_min(1)).all()
    assert narrow.argmax() == wide.argmax()


def test_both_keys_rank_alike():
    weights = torch.rand(50, 2000, dtype=F64, generator=seeded(1)) * 10
    gumbels, reservoir = gumbel_keys(weights.log(), seeded()), reservoir_keys(weights, seeded())
    assert torch.equal(gumbels.argsort(), reservoir.argsort())


@pytest.mark.parametrize("shape", [(5,), (1,), (0, 5), (2, 0, 3), (2, 3, 4)])
def test_shapes(shape: tuple[int, ...]):
    for dtype in (torch.float16, torch.float32, F64):
        keys = gumbel_keys(torch.zeros(shape, dtype=dtype), seeded())
        assert keys.shape == shape
        assert keys.isfinite().all()
        assert reservoir_keys(torch.ones(shape, dtype=dtype), seeded()).shape == shape


def test_strides_do_not_matter():
    dense = torch.randn(6, 4, generator=seeded(1))
    for logits in (dense.T, dense[::2], dense[:, 1:3], dense[:, :1].expand(-1, 9), dense[0].expand(3, 2, 4)):
        keys = gumbel_keys(logits, seeded())
        assert torch.equal(keys, gumbel_keys(logits.contiguous(), seeded()))
        assert len(keys.unique()) == keys.numel()
        reservoir = reservoir_keys(logits.exp(), seeded())
        assert torch.equal(reservoir, reservoir_keys(logits.exp().contiguous(), seeded()))
