"""Exponentials and logarithms that LLVM can vectorise.

`np.exp` in a Numba loop calls the C library for each element. These are polynomials without branches.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from khot._jit.compiler import fma, inline, part_options

_ROUND_32, _ROUND_64 = 1.5 * 2.0**23, 1.5 * 2.0**52  # adding one rounds to a whole number, in the lowest bits
_BITS_OF_ROUND_64 = int(np.float64(_ROUND_64).view(np.int64))
_BITS_OF_ROOT_HALF_32 = int(np.float32(0.5**0.5).view(np.int32))
_BITS_OF_127 = int(np.float32(127.0).view(np.int32))
_BIAS_64 = (1024 << 52) - int(np.float64(0.5**0.5).view(np.int64))


@fma
def decay32(x, s):
    """e^(-x s) for float32 x s >= 0, to 2e-7 (1 + x s) up to 87; exactly 1 at 0, exactly 0 beyond 89 and below 0.

    Read as an unsigned integer, a negative number is above all others, so that one minimum is enough.
    """
    z = x * (s * np.float32(1.4426950408889634))
    bits, most = np.float32(z).view(np.uint32), np.uint32(_BITS_OF_127)  # 2^-127 has the bits of 0
    y = np.uint32(bits if bits < most else most).view(np.float32)
    shifted = np.float32(_ROUND_32) - y
    f = (np.float32(_ROUND_32) - shifted) - y
    p = np.float32(1.3264726899e-3)  # 2^f to 9e-8 for |f| <= 1/2
    p = p * f + np.float32(9.6715126606e-3)
    p = p * f + np.float32(5.5507337442e-2)
    p = p * f + np.float32(2.4022242085e-1)
    p = p * f + np.float32(6.9314697760e-1)
    p = p * f + np.float32(1.0)
    bits = np.float32(p).view(np.int32) + (np.float32(shifted).view(np.int32) << np.int32(23))
    return np.int32(bits).view(np.float32)


_MOST = 1e300


@fma
def inverse(t):
    """1 / t, finite."""
    return min(1.0 / t, _MOST)


@fma
def exp64(x):
    """e^x for x <= 0, to 2 units in the last place; exactly 1 at 0 and exactly 0 below -708."""
    low = -708.0
    y = x if x > low else low
    shifted = y * 1.4426950408889634 + _ROUND_64
    whole = shifted - _ROUND_64
    r = y - whole * 0.693147180369123816490
    r = r - whole * 1.90821492927058770002e-10
    p = 2.0911236630261544486e-9
    p = p * r + 2.5100385495510319078e-8
    p = p * r + 2.7557282969549952704e-7
    p = p * r + 2.7557268459997064772e-6
    p = p * r + 2.4801587317144498984e-5
    p = p * r + 1.9841269863053616878e-4
    p = p * r + 1.3888888888886552517e-3
    p = p * r + 8.3333333333300618325e-3
    p = p * r + 4.1666666666666667228e-2
    p = p * r + 0.16666666666666667453
    p = p * r + 0.5
    p = (p * r) * r + r + 1.0
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    result = p * power
    return result if x > low else 0.0


@inline
def twice_atanh(z):
    """2 atanh(z) for |z| <= 1/3."""
    y = z * z
    a = 0.078157673537156122424
    a = a * y + 0.037458197303366327858
    a = a * y + 0.054226455163899063845
    a = a * y + 0.058671325896882965569
    a = a * y + 0.066675898307578551355
    a = a * y + 0.076922719588765822666
    a = a * y + 0.090909099496339794875
    a = a * y + 0.11111111099108056259
    a = a * y + 0.14285714285800132131
    a = a * y + 0.19999999999999760999
    a = a * y + 0.33333333333333333443
    double = z + z
    return double + double * (y * a)


@fma
def log1m(p):
    """log(1 - p) for 0 <= p <= 1/2, to 2 units in the last place."""
    return twice_atanh(-p / (2.0 - p))


@inline
def log_formula(x):
    """`log64` by the rules of the caller."""
    bits = np.float64(x).view(np.uint64)
    exponent = (bits + np.uint64(_BIAS_64)) >> np.uint64(52)  # plus 1024, so that the shift needs no sign
    f = np.uint64(bits - ((exponent - np.uint64(1024)) << np.uint64(52))).view(np.float64) - 1.0
    whole = np.uint64(exponent + np.uint64(_BITS_OF_ROUND_64 - 1024)).view(np.float64) - _ROUND_64
    return whole * 0.693147180369123816490 + (twice_atanh(f / (2.0 + f)) + whole * 1.90821492927058770002e-10)


@fma
def log64(x):
    """log x for a normal x > 0, to 2 units in the last place, also close to 1."""
    return log_formula(x)


@fma
def _parts32(x):
    """Whole w and f from -0.3 to 0.42 with x = 2^w (1 + f), for a normal float32 x > 0."""
    bits = np.float32(x).view(np.int32)
    whole = np.int32(bits - np.int32(_BITS_OF_ROOT_HALF_32)) >> np.int32(23)
    return whole, np.int32(bits - (whole << np.int32(23))).view(np.float32) - np.float32(1.0)


@fma
def _log_of_parts32(whole, f):
    z = f / (np.float32(2.0) + f)
    y = z * z
    a = np.float32(0.11111111)
    a = a * y + np.float32(0.14285715)
    a = a * y + np.float32(0.2)
    a = a * y + np.float32(0.33333334)
    double, whole = z + z, np.float32(whole)
    return whole * np.float32(0.693359375) + (double + double * (y * a) - whole * np.float32(2.12194440e-4))


@fma
def log32(x):
    """log x for a normal float32 x > 0, to 2e-7, also close to 1."""
    whole, f = _parts32(x)
    return _log_of_parts32(whole, f)


@fma
def log1m32(p, left):
    """log(1 - p) for 0 <= p < 1 with its complement `left`, both normal float32 numbers (or 0), to 2e-7 of itself."""
    whole, f = _parts32(left)
    return _log_of_parts32(whole, -p if whole == 0 else f)


def _of_llvm(name: str) -> Any:
    """An intrinsic of LLVM of two numbers.

    LLVM makes no vectors of ``y = x if x > y else y``, and slow masked stores of ``a[i] = x if x > a[i] else a[i]``.
    """

    def generate(_, builder, signature, arguments):
        kind = arguments[0].type
        function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
        return builder.call(function, arguments)

    return intrinsic(lambda _, x, y: (x(x, x), generate))


larger = _of_llvm("llvm.maxnum")
smaller = _of_llvm("llvm.minnum")


def _size_bits(_, x):
    """The bits of a number without its sign as an integer, which for NaN is more than for infinity."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(signature.return_type)
        return builder.and_(builder.bitcast(arguments[0], kind), kind(2 ** (kind.width - 1) - 1))

    return (types.int32 if x == types.float32 else types.int64)(x), generate


size_bits: Any = intrinsic(_size_bits)


def decayed(x, s):
    """e^(-x s), 0 for x < 0, by the type of x."""
    raise TypeError("only for compiled code")


@overload(decayed, jit_options=part_options({"contract"}))  # pyright: ignore[reportArgumentType]
def _decayed(x, s):
    if x == types.float32:
        return lambda x, s: decay32(x, s)
    return lambda x, s: exp64(-x * s) if x >= 0.0 else 0.0
