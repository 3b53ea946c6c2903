"""The counter-based generator gives the published numbers."""

import numpy as np
import pytest

pytest.importorskip("numba")
from khot._jit import counter
from tests.jit.calling import from_python

threefry = from_python(counter.threefry)


def test_known_answers_of_threefry():
    """From kat_vectors of Random123, 13 rounds."""
    ones = 2**64 - 1
    for key, count, expected in [
        ((0, 0), (0, 0), (0xF167B032C3B480BD, 0xE91F9FEE4B7A6FB5)),
        ((ones, ones), (ones, ones), (0xCCDEC5C917A874B1, 0x4DF53ABCA26CEB01)),
        (
            (0xA4093822299F31D0, 0x082EFA98EC4E6C89),
            (0x243F6A8885A308D3, 0x13198A2E03707344),
            (0xC3AAC71561042993, 0x3FE7AE8801AFF316),
        ),
    ]:
        words = threefry(*(np.uint64(word) for word in (*key, *count)))
        assert tuple(int(word) for word in words) == expected
