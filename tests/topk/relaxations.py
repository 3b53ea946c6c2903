"""The table from which the property tests of all relaxations follow: a new relaxation is a row here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import khot
from tests import oracles


@dataclass(frozen=True)
class Relaxation:
    function: Callable[..., Any]
    oracle: Callable[..., Any]
    bounded: bool = False  # entries at most 1
    ordered: bool = True  # has the keyword `ordered`
    keeps_order_from: float = 0.0  # the temperature from which larger keys have larger entries
    differentiable_twice: bool = True
    smooth_at_ties: bool = True  # equal keys have equal gradients
    error: Callable[[int, int, float, float], float] = lambda n, k, spread, t: max(2e-6, 24e-8 * spread / t)


RELAXATIONS = {
    "successive_softmax": Relaxation(
        khot.successive_softmax,
        oracles.successive,
        keeps_order_from=1.0,
        differentiable_twice=False,
        error=lambda n, k, spread, t: max(2e-6, 48e-8 * (spread / t + k) if t >= 0.7 else 24e-8 * spread / t),
    ),
    "neuralsort": Relaxation(
        khot.neuralsort,
        oracles.neuralsort,
        keeps_order_from=float("inf"),
        error=lambda n, k, spread, t: n * max(2e-6, 24e-8 * spread / t),
    ),
    "softsort": Relaxation(khot.softsort, oracles.softsort, keeps_order_from=float("inf"), smooth_at_ties=False),
    "capped_simplex": Relaxation(khot.capped_simplex, oracles.capped_simplex, bounded=True, ordered=False),
}

all_relaxations = pytest.mark.parametrize("relaxation", RELAXATIONS.values(), ids=RELAXATIONS.keys())
ordered_relaxations = pytest.mark.parametrize(
    "relaxation",
    [r for r in RELAXATIONS.values() if r.ordered],
    ids=[name for name, r in RELAXATIONS.items() if r.ordered],
)
