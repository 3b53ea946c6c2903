"""Arithmetic with pairs of float64 numbers: 32 digits, for the few rows where 16 are not enough.

A number is an unevaluated sum hi + lo with |lo| at most half a unit in the last place of hi. The building blocks are
Knuth's two-sum and Dekker's two-product, whose rounding errors are themselves float64 numbers.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

_SPLITTER = 2.0**27 + 1
_SQUARINGS = 8  # exp(x) is computed as exp(x / 2^8) and squared as often
_LOG_2 = (0.6931471805599453, 2.3190468138462996e-17)


class Pair(NamedTuple):
    """The sum hi + lo."""

    hi: Tensor
    lo: Tensor

    def map(self, f: Callable[[Tensor], Tensor]) -> "Pair":
        """Apply a function that moves entries but does no arithmetic."""
        return Pair(f(self.hi), f(self.lo))

    @property
    def value(self) -> Tensor:
        """Rounded to float64."""
        return self.hi + self.lo


def pair(x: Tensor) -> Pair:
    """A float64 tensor as a pair."""
    return Pair(x, torch.zeros_like(x))


def two_sum(a: Tensor, b: Tensor) -> Pair:
    """a + b without error."""
    s = a + b
    t = s - a
    return Pair(s, (a - (s - t)) + (b - t))


def _two_product(a: Tensor, b: Tensor) -> Pair:
    """a * b without error."""
    p = a * b
    (a1, a2), (b1, b2) = _split(a), _split(b)
    return Pair(p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2)


def _split(a: Tensor) -> tuple[Tensor, Tensor]:
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


def _renormalise(hi: Tensor, lo: Tensor) -> Pair:
    s = hi + lo
    return Pair(s, lo - (s - hi))


def negate(x: Pair) -> Pair:
    """-x."""
    return Pair(-x.hi, -x.lo)


def add(x: Pair, y: Pair) -> Pair:
    """x + y."""
    s, t = two_sum(x.hi, y.hi), two_sum(x.lo, y.lo)
    s = _renormalise(s.hi, s.lo + t.hi)
    return _renormalise(s.hi, s.lo + t.lo)


def subtract(x: Pair, y: Pair) -> Pair:
    """x - y."""
    return add(x, negate(y))


def multiply(x: Pair, y: Pair) -> Pair:
    """x * y."""
    p = _two_product(x.hi, y.hi)
    return _renormalise(p.hi, p.lo + (x.hi * y.lo + x.lo * y.hi))


def divide(x: Pair, y: Pair) -> Pair:
    """x / y, by long division."""
    first = x.hi / y.hi
    rest = subtract(x, multiply(y, pair(first)))
    second = rest.hi / y.hi
    rest = subtract(rest, multiply(y, pair(second)))
    return add(_renormalise(first, second), pair(rest.hi / y.hi))


def total(x: Pair) -> Pair:
    """Sum over the last axis, kept with length 1."""
    while x.hi.shape[-1] > 1:
        odd = x.hi.shape[-1] % 2
        x = x.map(lambda part: torch.nn.functional.pad(part, (0, odd)))  # noqa: B023 (called at once)
        x = add(x.map(lambda part: part[..., ::2]), x.map(lambda part: part[..., 1::2]))
    return x


def exp(x: Pair) -> Pair:
    """e^x for x <= 0 (or moderate); 0 where it underflows."""
    x = Pair(x.hi.clamp_min(-1e4), torch.where(x.hi > -1e4, x.lo, 0))
    whole = (x.hi / _LOG_2[0]).round()
    remainder = subtract(x, multiply(pair(whole), _constant(*_LOG_2, like=whole)))
    small = remainder.map(lambda part: part * 2.0**-_SQUARINGS)
    result = _constant(0.0, 0.0, like=whole)  # e^small - 1, by Horner's scheme
    for inverse in _INVERSE_FACTORIALS:
        result = multiply(small, add(result, _constant(*inverse, like=whole)))
    for _ in range(_SQUARINGS):  # (e^x)^2 - 1 = 2 (e^x - 1) + (e^x - 1)^2
        result = add(result.map(lambda part: 2 * part), multiply(result, result))
    result = add(result, _constant(1.0, 0.0, like=whole))
    # 2^whole in two factors, each a normal number: the product may underflow, the factors may not
    half = (whole / 2).floor()
    return result.map(lambda part: part * torch.exp2(half) * torch.exp2(whole - half))


def log(x: Pair) -> Pair:
    """log x for a normal x > 0, by one step of Newton's method."""
    guess = pair(x.hi.log())
    correction = subtract(multiply(x, exp(negate(guess))), _constant(1.0, 0.0, like=x.hi))
    return add(guess, correction)


def _constant(hi: float, lo: float, like: Tensor) -> Pair:
    return Pair(torch.full_like(like, hi), torch.full_like(like, lo))


def _inverse_factorials(count: int) -> list[tuple[float, float]]:
    """1/count!, ..., 1/2!, 1/1! to 32 digits."""
    exact = [Fraction(1, math.factorial(i)) for i in range(count, 0, -1)]
    return [(float(x), float(x - Fraction(float(x)))) for x in exact]


_INVERSE_FACTORIALS = _inverse_factorials(11)
