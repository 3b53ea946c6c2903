"""Random numbers by counter: the i-th number of a key is a function of i and the key, whoever computes it.

Threefry-2x64 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). A pair of words gives
two numbers; in every group of 2 x LANES numbers the first words make the first half, so that stores are vectors.
"""

import numpy as np

from khot.kernels import pool
from khot.kernels.compiled import exact
from khot.kernels.elementary import log64

LANES = 256
_SMALLEST = 2.0**-54  # stands in for a uniform number of exactly zero, so that no result is infinite


@exact
def _mix(x0, x1, rotation):
    x0 += x1
    return x0, ((x1 << np.uint64(rotation)) | (x1 >> np.uint64(64 - rotation))) ^ x0


@exact
def threefry(key0, key1, counter0, counter1):
    """Two random words of 64 bits."""
    key2 = np.uint64(0x1BD11BDAA9FC1A22) ^ key0 ^ key1
    x0, x1 = counter0 + key0, counter1 + key1
    keys = (key1, key2, key0, key1, key2, key0)
    for four in range(5):
        if four % 2 == 0:
            x0, x1 = _mix(x0, x1, 16)
            x0, x1 = _mix(x0, x1, 42)
            x0, x1 = _mix(x0, x1, 12)
            x0, x1 = _mix(x0, x1, 31)
        else:
            x0, x1 = _mix(x0, x1, 16)
            x0, x1 = _mix(x0, x1, 32)
            x0, x1 = _mix(x0, x1, 24)
            x0, x1 = _mix(x0, x1, 21)
        x0 += keys[four]
        x1 += keys[four + 1] + np.uint64(four + 1)
    return x0, x1


@exact
def _words(key0, key1, group, words):
    """Fill (2 LANES,) words of a group."""
    first, second = words[:LANES], words[LANES:]
    start = np.uint64(group) * np.uint64(LANES)
    for i in range(LANES):
        first[i], second[i] = threefry(key0, key1, start + np.uint64(i), np.uint64(0))


@exact
def _exponential(word):
    """-log u for a u of 52 random bits, precise in relative terms near 0, never 0 and never infinite."""
    left = 2.0 - np.uint64((word >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64)  # in (0, 1]
    result = -log64(left)
    return result if result > _SMALLEST else _SMALLEST


@exact
def _fill_exponential(key0, key1, first, last, out):
    words = np.empty(2 * LANES, np.uint64)
    for group in range(first, last):
        _words(key0, key1, group, words)
        here = out[group * 2 * LANES : (group + 1) * 2 * LANES]
        for i in range(here.shape[0]):
            here[i] = _exponential(words[i])


@exact
def _fill_gumbel(key0, key1, first, last, out):
    words = np.empty(2 * LANES, np.uint64)
    for group in range(first, last):
        _words(key0, key1, group, words)
        here = out[group * 2 * LANES : (group + 1) * 2 * LANES]
        for i in range(here.shape[0]):
            here[i] = -log64(_exponential(words[i]))


def exponential(key: tuple[int, int], out: np.ndarray) -> None:
    """Fill a flat array of float64 with standard exponential numbers."""
    _fill(_fill_exponential, key, out)


def gumbel(key: tuple[int, int], out: np.ndarray) -> None:
    """Fill a flat array of float32 or float64 with standard Gumbel numbers, -log of `exponential`."""
    _fill(_fill_gumbel, key, out)


def _fill(kernel, key: tuple[int, int], out: np.ndarray) -> None:
    groups = -(-len(out) // (2 * LANES))
    words = np.uint64(key[0]), np.uint64(key[1])
    pool.each(lambda part: kernel(*words, part.start, part.stop, out), pool.blocks(groups, work=2 * 2 * LANES))
