"""Counter-based random numbers: the i-th number is a function of i and the key, on any thread and in any order.

Threefry-2x64 with 13 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011: the fewest that pass
all tests of BigCrush). A pair of words gives two numbers; in every group of 2 x LANES numbers the first words make the
first half, so that stores are vectors. khot has no other generator of its own.
"""

import numpy as np

from khot._jit.compiler import fma, loop

LANES = 256


@fma
def _mix(x0, x1, rotation):
    x0 += x1
    return x0, ((x1 << np.uint64(rotation)) | (x1 >> np.uint64(64 - rotation))) ^ x0


@fma
def threefry(key0, key1, counter0, counter1):
    """Compute two random words of 64 bits."""
    key2 = np.uint64(0x1BD11BDAA9FC1A22) ^ key0 ^ key1
    x0, x1 = counter0 + key0, counter1 + key1
    x0, x1 = _mix(x0, x1, 16)
    x0, x1 = _mix(x0, x1, 42)
    x0, x1 = _mix(x0, x1, 12)
    x0, x1 = _mix(x0, x1, 31)
    x0, x1 = x0 + key1, x1 + (key2 + np.uint64(1))
    x0, x1 = _mix(x0, x1, 16)
    x0, x1 = _mix(x0, x1, 32)
    x0, x1 = _mix(x0, x1, 24)
    x0, x1 = _mix(x0, x1, 21)
    x0, x1 = x0 + key2, x1 + (key0 + np.uint64(2))
    x0, x1 = _mix(x0, x1, 16)
    x0, x1 = _mix(x0, x1, 42)
    x0, x1 = _mix(x0, x1, 12)
    x0, x1 = _mix(x0, x1, 31)
    x0, x1 = x0 + key0, x1 + (key1 + np.uint64(3))
    return _mix(x0, x1, 16)


@loop
def fill_words(key0, key1, group, words):
    """Fill the words (2 LANES,) of a group."""
    first, second = words[:LANES], words[LANES:]
    start = np.uint64(group) * np.uint64(LANES)
    for i in range(LANES):
        first[i], second[i] = threefry(key0, key1, start + np.uint64(i), np.uint64(0))
