"""From values at the nodes to a polynomial in u, and the adjoint map (see `nodes`)."""

import numpy as np

from khot._jit.compiler import fma
from khot.topk.successive._compiled import nodes

_U4, _U8 = (nodes.nodes(length) for length in nodes.LENGTHS)
_LOG4, _LOG8 = (np.log(nodes.nodes(length)) for length in nodes.LENGTHS)
_TO_CHEBYSHEV4, _TO_CHEBYSHEV8 = (nodes.to_chebyshev(length) / nodes.nodes(length) for length in nodes.LENGTHS)
_IN_POWERS4, _IN_POWERS8 = (nodes.chebyshev_in_powers(length) for length in nodes.LENGTHS)


@fma
def position(length, q):
    """Node q of `length` nodes."""
    return _U4[q] if length == 4 else _U8[q]


@fma
def logarithm(length, q):
    """Logarithm of node q of `length` nodes."""
    return _LOG4[q] if length == 4 else _LOG8[q]


@fma
def coefficients(values, result):
    """Fill in the coefficients of the polynomial C for which u C(u) has the given values at the nodes."""
    length = values.shape[0]
    to_chebyshev = _TO_CHEBYSHEV4 if length == 4 else _TO_CHEBYSHEV8
    in_powers = _IN_POWERS4 if length == 4 else _IN_POWERS8
    for d in range(length):
        result[d] = 0.0
    for m in range(length):
        chebyshev = 0.0
        for q in range(length):
            chebyshev += to_chebyshev[m, q] * values[q]
        for d in range(m + 1):
            result[d] += in_powers[m, d] * chebyshev


@fma
def at_nodes(moments, out):
    """Apply the adjoint of `coefficients` to moments."""
    length = moments.shape[0]
    to_chebyshev = _TO_CHEBYSHEV4 if length == 4 else _TO_CHEBYSHEV8
    in_powers = _IN_POWERS4 if length == 4 else _IN_POWERS8
    for q in range(length):
        out[q] = 0.0
    for m in range(length):
        chebyshev = 0.0
        for d in range(m + 1):
            chebyshev += in_powers[m, d] * moments[d]
        for q in range(length):
            out[q] += to_chebyshev[m, q] * chebyshev


@fma
def slope(table, s, most):
    """Turn the coefficients of C into those of d/du (u C(u)) / t, saturated so that a pass over far items holds them.

    `most` is the largest number of the dtype of that pass.
    """
    for d in range(table.shape[0]):
        table[d] = min(max(table[d] * (d + 1) * s, -most / 64.0), most / 64.0)
