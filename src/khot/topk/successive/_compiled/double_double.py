"""Arithmetic with pairs of float64 numbers, 32 digits: the scalar twin of `khot.topk.successive._torch_double_double`.

A number is a tuple (hi, lo) that stands for hi + lo. No flag may let the compiler reorder or fuse these sums.
"""

import math

from khot._jit.compiler import ieee

_SPLITTER = 2.0**27 + 1
_SQUARINGS = 8  # exp(x) is computed as exp(x / 2^8) and squared as often
_LOG_2 = (0.6931471805599453, 2.3190468138462996e-17)
_INVERSE_FACTORIALS = (  # 1/11!, ..., 1/1!
    (2.505210838544172e-08, -1.448814070935912e-24),
    (2.755731922398589e-07, 2.3767714622250297e-23),
    (2.7557319223985893e-06, -1.858393274046472e-22),
    (2.48015873015873e-05, 2.1511947866775882e-23),
    (0.0001984126984126984, 1.7209558293420705e-22),
    (0.001388888888888889, -5.300543954373577e-20),
    (0.008333333333333333, 1.1564823173178714e-19),
    (0.041666666666666664, 2.3129646346357427e-18),
    (0.16666666666666666, 9.25185853854297e-18),
    (0.5, 0.0),
    (1.0, 0.0),
)


@ieee
def two_sum(a, b):
    """a + b without error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@ieee
def _renormalise(hi, lo):
    s = hi + lo
    return s, lo - (s - hi)


@ieee
def _split(a):
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


@ieee
def add(x, y):
    """x + y."""
    s, e = two_sum(x[0], y[0])
    t, f = two_sum(x[1], y[1])
    s, e = _renormalise(s, e + t)
    return _renormalise(s, e + f)


@ieee
def negate(x):
    """-x."""
    return -x[0], -x[1]


@ieee
def multiply(x, y):
    """x * y."""
    p = x[0] * y[0]
    a, b = _split(x[0])
    c, d = _split(y[0])
    error = ((a * c - p) + a * d + b * c) + b * d
    return _renormalise(p, error + (x[0] * y[1] + x[1] * y[0]))


@ieee
def divide(x, y):
    """x / y, by long division."""
    first = x[0] / y[0]
    rest = add(x, negate(multiply(y, (first, 0.0))))
    second = rest[0] / y[0]
    rest = add(rest, negate(multiply(y, (second, 0.0))))
    return add(_renormalise(first, second), (rest[0] / y[0], 0.0))


@ieee
def exp(x):
    """e^x for x <= 0 (or moderate); 0 where it underflows."""
    if x[0] < -1e4:
        return 0.0, 0.0
    whole = math.floor(x[0] / _LOG_2[0] + 0.5)
    remainder = add(x, negate(multiply((whole, 0.0), _LOG_2)))
    small = (remainder[0] * 2.0**-_SQUARINGS, remainder[1] * 2.0**-_SQUARINGS)
    result = (0.0, 0.0)  # e^small - 1, by Horner's scheme
    for inverse in _INVERSE_FACTORIALS:
        result = multiply(small, add(result, inverse))
    for _ in range(_SQUARINGS):  # (e^x)^2 - 1 = 2 (e^x - 1) + (e^x - 1)^2
        result = add((2.0 * result[0], 2.0 * result[1]), multiply(result, result))
    result = add(result, (1.0, 0.0))
    return math.ldexp(result[0], int(whole)), math.ldexp(result[1], int(whole))


@ieee
def log(x):
    """log x for a normal x > 0, by one step of Newton's method."""
    guess = (math.log(x[0]), 0.0)
    return add(guess, add(multiply(x, exp(negate(guess))), (-1.0, 0.0)))
