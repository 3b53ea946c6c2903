"""The elementary functions of the compiled loops, against NumPy in float64."""

import numpy as np
import pytest

pytest.importorskip("numba")
from khot._jit import vector_math
from tests.jit.calling import from_python

decay32 = from_python(vector_math.decay32)
ONE = np.float32(1.0)


def test_decay_to_its_promise():
    x = np.concatenate([np.linspace(0.0, 87.0, 20_001), np.geomspace(1e-40, 1.0, 2_001)]).astype(np.float32)
    found = np.array([decay32(one, ONE) for one in x], np.float64)
    exact = np.exp(-x.astype(np.float64))
    np.testing.assert_array_less(np.abs(found / exact - 1), 2e-7 * (1 + x))


@pytest.mark.parametrize("s", [1e-3, 1.0, 1e3])
def test_decay_at_the_ends(s):
    s = np.float32(s)
    assert decay32(np.float32(0.0), s) == 1
    for x in [89.5, 1e3, 1e30, np.inf]:
        assert decay32(np.float32(x) / s, s) == 0
    for x in [-1e-30, -1e-3, -1.0, -200.0, -1e30, -np.inf]:
        assert decay32(np.float32(x), s) == 0
