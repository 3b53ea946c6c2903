"""Slow and obvious versions of what khot computes. They share no code with the package.

Relaxations are the textbook formulas in mpmath, with as many digits as the worst amplification can eat; gradients are
central differences there; probabilities are sums over all permutations of exact fractions.
"""

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath as mp
import numpy as np
import torch

Vectors = list[list[mp.mpf]]


def digits(oracle: Callable[..., Vectors], keys: Sequence[float], k: int, temperature: float) -> int:
    """Decimal digits that leave about thirty correct ones: the recursion eats some by 1 - p, some by amplification."""
    if oracle is not successive_softmax:
        return 30
    present = [x for x in keys if x > -np.inf] or [0.0]
    spread = (max(present) - min(present)) / temperature
    return int(30 + 0.45 * spread + k * np.log10(1 + 1 / temperature))


def successive_softmax(keys: Sequence, k: int, temperature) -> Vectors:
    """k times: p = softmax(x), x += log(1 - p) / t."""
    x = [key / temperature for key in keys]
    vectors = []
    for step in range(k):
        vectors.append(_softmax(x))
        if step < k - 1:
            x = [xi + mp.log(1 - p) / temperature if p else xi for xi, p in zip(x, vectors[-1], strict=True)]
    return vectors


def softsort(keys: Sequence, k: int, temperature) -> Vectors:
    """softmax(-|s_j - keys| / t)."""
    return [_softmax([-abs(s - key) / temperature for key in keys]) for s in sorted(keys, reverse=True)[:k]]


def neuralsort(keys: Sequence, k: int, temperature) -> Vectors:
    """softmax(((n + 1 - 2j) keys - sum of absolute differences) / t)."""
    n, sums = len(keys), [sum(abs(a - b) for b in keys) for a in keys]
    return [
        _softmax([((n + 1 - 2 * j) * key - total) / temperature for key, total in zip(keys, sums, strict=True)])
        for j in range(1, k + 1)
    ]


def capped_simplex(keys: Sequence, k: int, temperature) -> Vectors:
    """sigmoid((keys - tau) / t) with the tau at which it sums to k; as a single vector."""
    n = len(keys)
    if k in (0, n):
        return [[mp.mpf(k // n)] * n]
    low, high = min(keys) - 60 * temperature * (1 + mp.log(n)), max(keys) + 60 * temperature * (1 + mp.log(n))
    for _ in range(int(4 * mp.mp.dps)):
        middle = (low + high) / 2
        a = [1 / (1 + mp.exp((middle - key) / temperature)) for key in keys]
        low, high = (middle, high) if sum(a) > k else (low, middle)
    return [a]


def relaxed(oracle: Callable[..., Vectors], keys: Sequence[float], k: int, temperature: float) -> np.ndarray:
    """The relaxed k-hot vector of a row, absent items (-inf) included, rounded to float64."""
    present = [i for i, key in enumerate(keys) if key > -np.inf]
    result = np.zeros(len(keys))
    if len(present) < k:
        result[present] = 1
        return result
    with mp.workdps(digits(oracle, keys, k, temperature)):
        vectors = oracle([mp.mpf(float(keys[i])) for i in present], k, mp.mpf(float(temperature)))
        result[present] = [float(sum(column)) for column in zip(*vectors, strict=True)] if vectors else 0
    return result


def gradient(
    oracle: Callable[..., Vectors], keys: Sequence[float], k: int, temperature: float, cotangent
) -> np.ndarray:
    """Gradient of <cotangent, relaxed vector> in the keys, by central differences in high precision."""

    def objective(x: list) -> mp.mpf:
        vectors = oracle(x, k, mp.mpf(float(temperature)))
        return sum(
            mp.mpf(float(g)) * sum(column) for g, column in zip(cotangent, zip(*vectors, strict=True), strict=True)
        )

    result = []
    precision = digits(oracle, keys, k, temperature)
    with mp.workdps(3 * precision):
        x, h = [mp.mpf(float(key)) for key in keys], mp.mpf(10) ** -precision
        for i in range(len(x)):
            up, down = x.copy(), x.copy()
            up[i], down[i] = x[i] + h, x[i] - h
            result.append(float((objective(up) - objective(down)) / (2 * h)))
    return np.array(result)


def successive_gradient(keys: Sequence[float], k: int, temperature: float, cotangent: Sequence[float]) -> np.ndarray:
    """Gradient of <cotangent, relaxed vector> of the successive softmax: plain reverse mode with enough digits."""
    with mp.workdps(2 * digits(successive_softmax, keys, k, temperature)):
        t, g = mp.mpf(float(temperature)), [mp.mpf(float(x)) for x in cotangent]
        back = [mp.mpf(0)] * len(keys)
        for p in reversed(successive_softmax([mp.mpf(float(key)) for key in keys], k, t)):
            bar = [gi - b / (1 - pi) for gi, b, pi in zip(g, back, p, strict=True)]
            mean = sum(pi * b for pi, b in zip(p, bar, strict=True))
            back = [b + pi * (bi - mean) / t for b, pi, bi in zip(back, p, bar, strict=True)]
        return np.array([float(b) for b in back])


def successive_extended(keys: np.ndarray, k: int, temperature: float) -> np.ndarray:
    """The successive softmax of one row in 80-bit floats, for sizes where mpmath is too slow."""
    x = keys.astype(np.longdouble) / np.longdouble(temperature)
    total = np.zeros_like(x)
    for _ in range(k):
        top = x.argmax()
        weight = np.exp(x - x[top])
        total += weight / weight.sum()
        others = np.delete(x, top)
        others_log = others.max() + np.log(np.exp(others - others.max()).sum()) - x[top]
        log_left = np.log1p(-np.delete(weight, top) / weight.sum())
        log_left = np.insert(log_left, top, others_log - np.log1p(np.exp(others_log)))
        x = x + log_left / np.longdouble(temperature)
    return total.astype(np.float64)


def ordered_probability(weights: Sequence[float], sequence: Sequence[int]) -> Fraction:
    """Eq. 1 of the paper, exactly."""
    exact = [Fraction(float(w)) for w in weights]
    remaining, probability = sum(exact), Fraction(1)
    for i in sequence:
        probability *= exact[i] / remaining
        remaining -= exact[i]
    return probability


def subset_probabilities(weights: Sequence[float], k: int) -> dict[tuple[int, ...], float]:
    """Eq. 2 of the paper, for all subsets, by summing over all orders."""
    table: dict[tuple[int, ...], Fraction] = {}
    for sequence in itertools.permutations(range(len(weights)), k):
        subset = tuple(sorted(sequence))
        table[subset] = table.get(subset, Fraction(0)) + ordered_probability(weights, sequence)
    return {subset: float(probability) for subset, probability in table.items()}


def inclusion(weights: Sequence[float], k: int) -> torch.Tensor:
    """Probability of each item to be chosen, from the table of all subsets."""
    result = torch.zeros(len(weights), dtype=torch.float64)
    for subset, probability in subset_probabilities(weights, k).items():
        result[list(subset)] += probability
    return result


def _softmax(x: Sequence[mp.mpf]) -> list[mp.mpf]:
    top = max(x)
    weights = [mp.exp(xi - top) for xi in x]
    total = sum(weights)
    return [w / total for w in weights]
