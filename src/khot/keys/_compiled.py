"""Standard exponential and Gumbel noise, and keys made of it, from the counter-based generator.

A number has 52 random bits in float64, and 62 in float32, where it is precise in relative terms at both ends.
"""

import numpy as np

from khot._jit import passes
from khot._jit.compiler import allocates, fma, kernel, loop
from khot._jit.counter import LANES, fill_words
from khot._jit.passes import largest
from khot._jit.threads import in_blocks
from khot._jit.vector_math import larger, log1m32, log32, log64

_SMALLEST = 2.0**-54  # stands in for a uniform number of exactly zero, so that no result is infinite


@fma
def _exponential(word):
    """-log u for u of 52 random bits: positive and finite, with a small relative error near 0."""
    left = 2.0 - np.uint64((word >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64)  # in (0, 1]
    result = -log64(left)
    return result if result > _SMALLEST else _SMALLEST


@fma
def _share(high, low):
    """Number in [0, 1] of 62 random bits, in float32, with a small relative error near 0."""
    first, second = high >> np.uint32(1), ((high & np.uint32(1)) << np.uint32(30)) | (low >> np.uint32(2))
    return np.float32(np.int32(first)) * np.float32(2.0**-31) + np.float32(np.int32(second)) * np.float32(2.0**-62)


@fma
def _exponential32(share, left):
    """`_exponential` in float32, of the share that a word makes and of that its complement makes."""
    return larger(-log1m32(share, left), np.float32(_SMALLEST))


@loop
def _gumbels32(halves, left, out):
    """-log of `_exponential` of words in two halves; in three loops, since in one the processor waits for results."""
    for i in range(out.shape[0]):
        high, low = halves[2 * i + 1], halves[2 * i]
        out[i], left[i] = _share(high, low), _share(~high, ~low)
    for i in range(out.shape[0]):
        out[i] = _exponential32(out[i], left[i])
    for i in range(out.shape[0]):
        out[i] = -log32(out[i])


@kernel
@allocates
def _fill_exponential(first, last, key0, key1, out):
    words = np.empty(2 * LANES, np.uint64)
    for group in range(first, last):
        fill_words(key0, key1, group, words)
        here = out[group * 2 * LANES : (group + 1) * 2 * LANES]
        for i in range(here.shape[0]):
            here[i] = _exponential(words[i])
    return 0


@kernel
@allocates
def _survey(first, last, logits, tops):
    """Write the largest logit of each row; return whether none is NaN or +inf."""
    sound = True
    for b in range(first, last):
        tops[b] = largest(logits[b])
        sound &= tops[b] < np.inf and not passes.has_nan(logits[b], 0, logits.shape[1])
    return sound


@kernel
@allocates
def _perturb(first, last, key0, key1, logits, tops, out):
    """Fill groups of the flat `out`: logits, minus the top of their row, plus noise."""
    n, words, kind = logits.shape[1], np.empty(2 * LANES, np.uint64), logits.dtype.type
    halves, left = words.view(np.uint32), np.empty(2 * LANES, np.float32)
    lowest, absent = np.finfo(logits.dtype).min, kind(-np.inf)
    for group in range(first, last):
        fill_words(key0, key1, group, words)
        start = group * 2 * LANES
        here = out[start : start + 2 * LANES]
        if logits.itemsize == 4:
            _gumbels32(halves, left, here)
        else:
            for i in range(here.shape[0]):
                here[i] = -log64(_exponential(words[i]))
        while start < out.shape[0] and start < (group + 1) * 2 * LANES:
            b, column = start // n, start % n
            stop = min(start + n - column, (group + 1) * 2 * LANES)
            row, there = logits[b % logits.shape[0], column : column + stop - start], out[start:stop]
            top = kind(max(tops[b % logits.shape[0]], lowest))
            for i in range(there.shape[0]):
                distance = row[i] - top
                distance = lowest if distance < lowest else distance
                there[i] += absent if row[i] == absent else distance
            start = stop
    return 0


def exponential(key: tuple[int, int], out: np.ndarray) -> None:
    """Fill a flat array of float64 with standard exponential numbers."""
    groups, words = -(-len(out) // (2 * LANES)), (np.uint64(key[0]), np.uint64(key[1]))
    in_blocks(_fill_exponential, groups, 10 * LANES, *words, out)


def perturb(key: tuple[int, int], logits: np.ndarray, centred: bool, out: np.ndarray) -> bool:
    """Fill the rows of out, float32 or float64, with logits plus standard Gumbel noise, -log of `exponential`.

    The rows of the logits are repeated to fill `out`. If `centred`, the largest logit of each row is subtracted, so
    that the noise is not lost in a large offset. Returns False, and does nothing, if a logit is NaN or +inf.
    """
    words, tops = (np.uint64(key[0]), np.uint64(key[1])), np.empty(len(logits), logits.dtype)
    if not in_blocks(_survey, len(logits), logits.shape[1] // 4, logits, tops):
        return False
    if not centred:
        tops[:] = 0
    flat = out.reshape(-1)
    groups = -(-len(flat) // (2 * LANES))
    in_blocks(_perturb, groups, 10 * LANES, *words, logits, tops, flat)
    return True
