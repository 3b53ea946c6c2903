"""Explanations with known answers: the four synthetic problems of L2X.

A few of ten features determine the class probability; an explainer should give these the highest scores.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from khot import _checks
from khot.experiments.runs import write_rows
from khot.explain import SubsetExplainer

FEATURES = 10


@dataclass(frozen=True)
class Problem:
    """A distribution of rows, a model, and the features that determine its output.

    Attributes
    ----------
    draw : callable
        ``f(rows, generator) -> (rows, 10)``.
    logit : callable
        ``f(X) -> (rows,)``: the probability of the second class is 1 / (1 + e^logit).
    relevant : callable
        ``f(X) -> (rows, 10)``: flags of the features that determine the output.
    k : int
        Number of these features.
    """

    draw: Callable[[int, np.random.RandomState], NDArray[np.float64]]
    logit: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    relevant: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
    k: int

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
        """True probabilities of the two classes."""
        p = 1 / (1 + np.exp(self.logit(X)))
        return np.stack([1 - p, p], 1)

    @property
    def optimum(self) -> float:
        """Smallest possible median rank of the relevant features."""
        return (self.k + 1) / 2


def _normal(rows: int, noise: np.random.RandomState) -> NDArray[np.float64]:
    return noise.randn(rows, FEATURES)


def _two_humps(rows: int, noise: np.random.RandomState) -> NDArray[np.float64]:
    X = noise.randn(rows, FEATURES)  # noqa: N806
    X[:, 9] += np.where(noise.rand(rows) < 0.5, 3.0, -3.0)
    return X


def _always(*features: int) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]]:
    return lambda x: np.broadcast_to(np.isin(np.arange(FEATURES), features), x.shape)


def _orange_skin(X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
    return np.square(X).sum(1) - 4


def _additive(X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
    return -100 * np.sin(0.2 * X[:, 0]) + np.abs(X[:, 1]) + X[:, 2] + np.exp(-X[:, 3]) - 2.4


def _switched(X: NDArray[np.float64]) -> NDArray[np.bool_]:  # noqa: N803
    return np.where(X[:, 9:] > 0, _always(0, 1, 2, 3, 9)(X), _always(4, 5, 6, 7, 9)(X))


PROBLEMS = {
    "xor": Problem(_normal, lambda x: x[:, 0] * x[:, 1], _always(0, 1), 2),
    "orange skin": Problem(_normal, lambda x: _orange_skin(x[:, :4]), _always(0, 1, 2, 3), 4),
    "nonlinear additive": Problem(_normal, lambda x: _additive(x[:, :4]), _always(0, 1, 2, 3), 4),
    "switch": Problem(
        _two_humps, lambda x: np.where(x[:, 9] > 0, _orange_skin(x[:, :4]), _additive(x[:, 4:8])), _switched, 5
    ),
}


@dataclass(frozen=True)
class Size:
    """Number of rows to learn from, and length of the training."""

    rows: int
    batch_size: int
    epochs: int


SMALL, LARGE = Size(20_000, 250, 5), Size(100_000, 500, 10)
SIZES = {  # fewer rows are not enough to learn which half of the features is relevant for a row of the switch
    "quick": dict.fromkeys(PROBLEMS, SMALL) | {"switch": Size(50_000, 250, 8)},
    "full": dict.fromkeys(PROBLEMS, LARGE),
}
SEEDS: dict[str, tuple[int, ...]] = {"quick": (0,), "full": (3, 4, 5)}  # the settings were chosen with seeds 0, 1 and 2
SETTINGS: dict[str, Any] = {"learning_rate": 3e-3, "patience": None}
TEMPERATURES = {name: {"subset": 0.3, "l2x": 0.3} for name in PROBLEMS} | {
    "switch": {"subset": 2.0, "l2x": 1.0}  # the best of 0.3, 0.6, 1 and 2; lower ones get stuck
}


@dataclass(frozen=True)
class Row:
    """The mean over test rows of the median rank of the relevant features; the smallest possible is `optimum`."""

    problem: str
    method: str
    temperature: float
    median_rank: float  # mean over the seeds
    by_seed: dict[int, float]
    optimum: float
    size: Size
    minutes: float


def median_rank(scores: NDArray[Any], relevant: NDArray[np.bool_]) -> float:
    """Mean over rows of the median rank of the relevant features by their scores; the highest score has rank 1.

    >>> median_rank(np.array([[0.9, 0.1, 0.5]]), np.array([[True, False, True]]))
    1.5
    """
    ranks = 1 + np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    return float(np.mean([np.median(row[flags]) for row, flags in zip(ranks, relevant, strict=True)]))


def run(name: str, method: str, profile: str, test_rows: int = 10_000) -> Row:
    """Explain one problem with one method."""
    began, problem, size = time.perf_counter(), PROBLEMS[name], SIZES[profile][name]
    temperature = TEMPERATURES[name][_checks.choice("method", method, tuple(TEMPERATURES[name]))]
    found = {}
    for seed in SEEDS[profile]:
        noise = np.random.RandomState(seed)
        train, test = problem.draw(size.rows, noise), problem.draw(test_rows, noise)
        options: dict[str, Any] = SETTINGS | {
            "epochs": size.epochs,
            "batch_size": size.batch_size,
            "random_state": seed,
        }
        explainer = SubsetExplainer(problem.k, sampler=method, temperature=temperature, **options)
        scores = explainer.fit(problem.predict_proba, train).explain(test).scores
        found[seed] = round(median_rank(scores, problem.relevant(test)), 3)
    minutes = round((time.perf_counter() - began) / 60, 2)
    mean = round(float(np.mean(list(found.values()))), 3)
    return Row(name, method, temperature, mean, found, problem.optimum, size, minutes)


def write(rows: list[Row], folder: Path) -> Path:
    """Write `known-answers.json` into an existing folder, and return its path."""
    return write_rows(folder / "known-answers.json", rows, SETTINGS)


def table(rows: list[Row]) -> str:
    """Table of the results as text."""
    lines = [f"{'problem':<20}{'method':<8}{'median rank':>12}{'optimum':>9}{'minutes':>9}"]
    lines += [f"{r.problem:<20}{r.method:<8}{r.median_rank:>12.2f}{r.optimum:>9.1f}{r.minutes:>9.2f}" for r in rows]
    return "\n".join(lines)
