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
    """The node q of so many."""
    return _U4[q] if length == 4 else _U8[q]


@fma
def logarithm(length, q):
    """Of that node."""
    return _LOG4[q] if length == 4 else _LOG8[q]


@fma
def coefficients(values, result):
    """Of the polynomial in u that has these values, times u, at the nodes."""
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
    """The adjoint of `coefficients`."""
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
