"""Parts and kernels: what Python can call, and how often Numba compiles them."""

import gc

import numpy as np
import pytest

pytest.importorskip("numba")

from numba import njit

from khot._jit.compiler import allocates, fma, kernel
from khot._jit.threads import in_blocks


@fma
def _plus(x, y):
    return x + y


@kernel
@allocates
def _sums(first, last, out):
    for i in range(first, last):
        out[i] = _plus(_plus(i, 1), _plus(0, len(out)))
    return 0


def test_a_part_cannot_be_called_from_python_before_or_after_a_kernel_was_compiled():
    with pytest.raises(TypeError, match="from Python"):
        _plus(1, 2)
    out = np.empty(4)
    in_blocks(_sums, 4, 1, out)
    assert out.tolist() == [5, 6, 7, 8]
    with pytest.raises(TypeError, match="from Python"):
        _plus(1, 2)
    assert _plus.py_func(1, 2) == 3


def test_constants_do_not_make_another_specialisation():
    assert njit(lambda n: _plus(n, 1) + _plus(2, 3))(4) == 10
    assert len(_plus.overloads) == 1


@pytest.mark.parametrize("collects", [True, False])
def test_compiling_leaves_the_garbage_collector_as_it_was(collects):
    @kernel
    @allocates
    def one(first, last, out):
        out[first:last] = 1.0
        return 0

    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        in_blocks(one, 3, 1, np.empty(3))
        assert gc.isenabled() == collects
    finally:
        (gc.enable if was else gc.disable)()
