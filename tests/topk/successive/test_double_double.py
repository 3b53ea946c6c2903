"""Pairs of float64 numbers against mpmath."""

import mpmath as mp
import pytest
import torch

from khot.topk.successive import _torch_double_double as dd

F64 = torch.float64


def exact(x: dd.Pair) -> list[mp.mpf]:
    return [mp.mpf(hi) + mp.mpf(lo) for hi, lo in zip(x.hi.tolist(), x.lo.tolist(), strict=True)]


def random_pairs(low: float, high: float, seed: int = 0) -> dd.Pair:
    uniform = torch.rand(2, 200, generator=torch.Generator().manual_seed(seed), dtype=F64)
    hi = low + (high - low) * uniform[0]
    return dd.two_sum(hi, hi * uniform[1] * 1e-17)


@pytest.mark.parametrize(
    ("operation", "reference"),
    [
        (dd.add, lambda a, b: a + b),
        (dd.subtract, lambda a, b: a - b),
        (dd.multiply, lambda a, b: a * b),
        (dd.divide, lambda a, b: a / b),
    ],
)
def test_arithmetic_has_31_digits(operation, reference):
    a, b = random_pairs(2, 10), random_pairs(0.1, 1, seed=1)
    with mp.workdps(60):
        expected = [reference(x, y) for x, y in zip(exact(a), exact(b), strict=True)]
        assert all(abs(got / want - 1) < 1e-31 for got, want in zip(exact(operation(a, b)), expected, strict=True))


def test_sums_of_any_length():
    for length in (1, 2, 7, 200):
        x = random_pairs(-1, 3).map(lambda part, length=length: part[:length])
        with mp.workdps(60):
            assert abs(exact(dd.total(x))[0] - sum(exact(x))) < 1e-29


def test_exponential_and_logarithm():
    x, y = random_pairs(-600, 0), random_pairs(1e-3, 20)
    with mp.workdps(60):
        assert all(abs(got / mp.exp(at) - 1) < 1e-28 for got, at in zip(exact(dd.exp(x)), exact(x), strict=True))
        assert all(abs(got - mp.log(at)) < 1e-30 for got, at in zip(exact(dd.log(y)), exact(y), strict=True))
    extremes = dd.exp(dd.pair(torch.tensor([0.0, -1e3, -1e300], dtype=F64)))
    assert extremes.value.tolist() == [1, 0, 0]
