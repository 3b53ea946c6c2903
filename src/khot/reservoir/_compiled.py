"""Scores of rows, of which the smallest are the sample: a function of the seed, the number of a row, and its weight.

The score of row i is log E_i - log w_i. The exponential number E_i = -log(1 - p_i) comes from word i of the
counter-based generator, p_i = (word + 1/2) / 2^64, with a small relative error at both ends. Everything that decides
about the sample is compiled without contraction, so that it has the same bits on every processor.
"""

import math

import numpy as np

from khot._jit.compiler import allocates, fma, kernel, loop, portable
from khot._jit.counter import LANES, fill_words
from khot._jit.threads import in_blocks
from khot._jit.vector_math import exp64, log_formula, twice_atanh

GROUP = 2 * LANES  # rows whose words are made together
SOUND = 2**63 - 1  # stands for no bad row
_SMALLEST_NORMAL = 2.0**-1022
_LOG_54 = 54.0 * 0.6931471805599453
_MARGIN = 1.0 + 1e-9  # rows this close to the bound are looked at exactly


@portable
def _score(words, weights, logs, scores):
    """Turn words and weights into scores."""
    for i in range(words.shape[0]):
        word = words[i]
        above = word >> np.uint64(63)
        nearer = ~word if above else word
        p = np.float64(np.int64(nearer)) * 2.0**-64 + 2.0**-65  # or 1 - p, where p is above 1/2
        log_left = log_formula(p) if above else -twice_atanh(p / (2.0 - p))
        scores[i] = log_formula(-log_left)
    if logs:
        for i in range(words.shape[0]):
            scores[i] -= weights[i]
    else:
        for i in range(words.shape[0]):
            w = weights[i]
            small = w < _SMALLEST_NORMAL
            log_weight = log_formula(w * 2.0**54 if small else w) - (_LOG_54 if small else 0.0)
            scores[i] -= log_weight if w > 0.0 else -math.inf


@loop
def _possible(words, weights, logs, bound, most, mask):
    """Mark rows whose score may be below the bound, by p <= E; returns their number, and that of bad weights.

    `most` is e^bound with a margin.
    """
    possible, bad = 0, 0
    if logs:
        for i in range(weights.shape[0]):
            p = np.uint64((words[i] >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
            x = weights[i] + bound
            mask[i] = p <= exp64(x if x < 0.0 else 0.0) * _MARGIN
            possible += mask[i]
            bad += not (weights[i] < math.inf)
    else:
        for i in range(weights.shape[0]):
            p = np.uint64((words[i] >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
            mask[i] = p <= weights[i] * most
            possible += mask[i]
            bad += not (0.0 <= weights[i] < math.inf)
    return possible, bad


@fma
def _first_bad(weights, logs):
    i = 0
    while weights[i] < math.inf and (logs or weights[i] >= 0.0):
        i += 1
    return i


@kernel
@allocates
def _select(first, last, key0, key1, start, weights, logs, bound, most, places, scores, counts):
    """Fill in the places and scores (groups, GROUP) of rows below the bound, and their number in each group.

    `start` is the number of the first row. Returns the place of a row whose weight is not valid, or SOUND.
    """
    words, mask = np.empty(GROUP, np.uint64), np.empty(GROUP, np.bool_)
    own, found = np.empty(GROUP), np.empty(GROUP)
    bad = SOUND
    offset = start % GROUP
    for g in range(first, last):
        fill_words(key0, key1, start // GROUP + g, words)
        begin, end = max(g * GROUP - offset, 0), min((g + 1) * GROUP - offset, weights.shape[0])
        skipped = begin - (g * GROUP - offset)
        here, numbers = weights[begin:end], words[skipped : skipped + end - begin]
        possible, invalid = _possible(numbers, here, logs, bound, most, mask)
        if invalid:
            bad = min(bad, begin + _first_bad(here, logs))
        count = 0
        if possible:
            for i in range(end - begin):
                if mask[i]:
                    places[g, count], words[count], own[count] = begin + i, numbers[i], here[i]
                    count += 1
            _score(words[:count], own[:count], logs, found)
        kept = 0
        for i in range(count):
            if found[i] < bound:
                places[g, kept], scores[g, kept] = places[g, i], found[i]
                kept += 1
        counts[g] = kept
    return bad


def select(
    key: tuple[int, int], start: int, weights: np.ndarray, logs: bool, bound: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Places and scores of the rows `start`, `start` + 1, ... whose score is below the bound, in their order.

    The last number is the place of the first row whose weight is not valid, or SOUND.
    """
    groups = -(-(start % GROUP + len(weights)) // GROUP)
    places, scores = np.empty((groups, GROUP), np.int64), np.empty((groups, GROUP))
    counts, words = np.zeros(groups, np.int64), (np.uint64(key[0]), np.uint64(key[1]))
    most = math.exp(bound) * _MARGIN if bound < 700 else math.inf
    arguments = start, weights, logs, float(bound), most, places, scores, counts
    bad = in_blocks(_select, groups, 4 * LANES, *words, *arguments)
    kept = np.flatnonzero(counts)
    if not len(kept):
        return np.empty(0, np.int64), np.empty(0), bad
    chosen = np.arange(GROUP) < counts[kept][:, None]
    return places[kept][chosen], scores[kept][chosen], bad
