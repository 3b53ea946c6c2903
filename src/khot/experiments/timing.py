"""The paper's runtime table: a small convnet selects the k nearest of m candidates of one query.

As in the paper, a trial is one forward pass, here recorded by autograd: from the images to the keys, which are negative
squared distances between the embeddings of the query and the candidates (the encoder's part), and from the keys to the
relaxed k-hot vector (the operator's part). The weights and the images are random, and the keys have no noise.

NeuralSort as published is the formula of Grover et al. with its m x m matrices and O(m^2) cost, which the paper states.
Their code sums the rows of a matrix by a product with an m x m matrix of ones, O(m^3), and is slower still.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from khot import _checks
from khot._estimators.fitting import new_network
from khot._renamed import renamed
from khot._report.figures import timing_lines
from khot.errors import InvalidValueError
from khot.experiments.runs import machine, write_result
from khot.topk import neuralsort, successive_softmax

Operator = Callable[[Tensor, int, float], Tensor]

CANDIDATES, K, TRIALS, TEMPERATURE = (100, 1000, 5000), 5, 100, 1.0
PASS = "forward only, recorded by autograd"
FIXED: dict[str, Any] = {"temperature": TEMPERATURE, "queries": 1, "dtype": "float32", "pass": PASS}
LONG, BUDGET, FEWEST = 1.0, 30.0, 3  # trials of over LONG seconds are repeated for BUDGET seconds
PUBLISHED, TEXTBOOK = "NeuralSort as published", "textbook successive softmax"
PAPER = {  # seconds, for k = 5
    PUBLISHED: {100: 0.010, 1000: 0.073, 5000: 3.694},
    TEXTBOOK: {100: 0.010, 1000: 0.028, 5000: 0.110},
}
PAPER_SETTING = "forward pass of a small CNN and the operator, average of 100 trials, Titan Xp GPU"


@dataclass(frozen=True)
class Measured:
    """Mean and smallest seconds of the trials, or ratios of two of these."""

    mean: float
    best: float


@dataclass(frozen=True)
class Row:
    """Times of an operator. `times_faster` is the time of NeuralSort as published at the same m divided by them."""

    m: int
    operator: str
    trials: int
    encoder_seconds: Measured
    operator_seconds: Measured
    total_seconds: Measured
    operator_times_faster: Measured
    total_times_faster: Measured
    paper_seconds: float | None  # total seconds of the two operators that the paper timed
    paper_times_faster: float | None


@dataclass(frozen=True)
class Result:
    """Result of `khot reproduce timing`."""

    settings: dict[str, Any]
    machine: dict[str, Any]
    paper: str
    rows: list[Row]
    minutes: float


def published_neuralsort(keys: Tensor, temperature: float) -> Tensor:
    """Relaxed permutation (m, m) of keys (m,): row j is softmax(((m + 1 - 2j) keys - A 1) / temperature)."""
    m = len(keys)
    differences = (keys.unsqueeze(-1) - keys).abs()
    coefficients = m + 1 - 2 * torch.arange(1, m + 1, dtype=keys.dtype)
    return torch.softmax((coefficients.unsqueeze(-1) * keys - differences.sum(-1)) / temperature, -1)


def textbook_successive_softmax(keys: Tensor, k: int, temperature: float) -> Tensor:
    """Relaxed k-hot vector (m,) by k softmaxes, as it is usually written."""
    total = torch.zeros_like(keys)
    for _ in range(k):
        p = torch.softmax(keys / temperature, -1)
        total = total + p
        keys = keys + torch.log((1 - p).clamp_min(1e-20))
    return total


OPERATORS: dict[str, Operator] = {
    PUBLISHED: lambda keys, k, temperature: published_neuralsort(keys, temperature)[:k].sum(-2),
    "khot.neuralsort": neuralsort,
    TEXTBOOK: textbook_successive_softmax,
    "khot.successive_softmax": successive_softmax,
}


@renamed(seed="random_state", candidates="n_candidates")
def run(n_candidates: Sequence[int] = CANDIDATES, k: int = K, trials: int = TRIALS, random_state: int = 0) -> Result:
    """Time the four operators for each number of candidates."""
    began = time.perf_counter()
    trials = _checks.whole_number("trials", trials, least=1)
    random_state = _checks.whole_number("random_state", random_state, least=0, most=2**63 - 1)
    candidates = sorted({_checks.whole_number("n_candidates", m, least=1) for m in n_candidates})
    if not candidates:
        raise InvalidValueError("n_candidates must hold at least one number, but got none: try 100 1000 5000")
    _checks.count(_checks.whole_number("k", k, least=1), min(candidates), ())
    rows = [row for m in candidates for row in _rows(m, k, trials, random_state)]
    settings = {"candidates": candidates, "k": k, "trials": trials, "seed": random_state, **FIXED}
    return Result(settings, machine(), PAPER_SETTING, rows, minutes=round((time.perf_counter() - began) / 60, 2))


def write(result: Result, folder: Path) -> tuple[Path, Path]:
    """Write `timing.json` and `timing.png` into an existing folder; returns their paths."""
    data, picture = folder / "timing.json", folder / "timing.png"
    write_result(data, asdict(result))
    means = {name: [row.operator_seconds.mean for row in result.rows if row.operator == name] for name in OPERATORS}
    timing_lines(
        picture,
        candidates=result.settings["candidates"],
        series=list(means.items()),
        title=f"Selecting k = {result.settings['k']} of m candidates: the operator's part of a forward pass (mean)",
    )
    return data, picture


def table(result: Result) -> str:
    """Result as text: one row for each operator, one block for each number of candidates."""
    heads = ["encoder", "operator", "its best", "total", "operator", "its best", "total", "seconds", "faster"]
    lines = [
        f"{'':35}{'seconds, mean':^40}{'times faster than published':^30}{'paper, total':>20}",
        f"{'m':>6}  {'operator':<27}" + "".join(f"{head:>10}" for head in heads),
    ]
    for i, row in enumerate(result.rows):
        lines += [""] if i % len(OPERATORS) == 0 else []
        lines.append(f"{row.m:>6,}  {row.operator:<27}" + "".join(f"{cell:>10}" for cell in _cells(row)))
    trials = ", ".join(f"{row.trials} at m = {row.m:,}" for row in result.rows[:: len(OPERATORS)])
    return "\n".join([*lines, "", f"trials: {trials}", f"paper: {result.paper}"])


def _cells(row: Row) -> list[str]:
    seconds = row.encoder_seconds.mean, row.operator_seconds.mean, row.operator_seconds.best, row.total_seconds.mean
    faster = row.operator_times_faster.mean, row.operator_times_faster.best, row.total_times_faster.mean
    paper = [] if row.paper_seconds is None else [f"{row.paper_seconds:.3f}", f"{row.paper_times_faster:.2f}"]
    return [f"{number:.5f}" for number in seconds] + [f"{number:.2f}" for number in faster] + paper


def _rows(m: int, k: int, trials: int, seed: int) -> list[Row]:
    times = _measure(m, k, trials, seed)
    encoder, operator = ({name: _seconds([t[i] for t in pairs]) for name, pairs in times.items()} for i in (0, 1))
    total = {name: _seconds([sum(pair) for pair in pairs]) for name, pairs in times.items()}
    rows = []
    for name, pairs in times.items():
        paper = PAPER.get(name, {}).get(m) if k == K else None
        rows.append(
            Row(
                m=m,
                operator=name,
                trials=len(pairs),
                encoder_seconds=encoder[name],
                operator_seconds=operator[name],
                total_seconds=total[name],
                operator_times_faster=_ratio(operator[PUBLISHED], operator[name]),
                total_times_faster=_ratio(total[PUBLISHED], total[name]),
                paper_seconds=paper,
                paper_times_faster=None if paper is None else PAPER[PUBLISHED][m] / paper,
            )
        )
    return rows


def _measure(m: int, k: int, trials: int, seed: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of encoder and operator in every trial. The operators take turns, under the same load of the machine."""
    encoder = new_network(seed, _encoder)
    images = torch.rand(m + 1, 1, 28, 28, generator=torch.Generator().manual_seed(seed))
    for operator in OPERATORS.values():
        _trial(operator, k, encoder, images)  # compiles
    slowest = max(sum(_trial(operator, k, encoder, images)) for operator in OPERATORS.values())
    if slowest > LONG:
        trials = min(trials, max(FEWEST, int(BUDGET / slowest)))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in OPERATORS}
    for _ in range(trials):
        for name, operator in OPERATORS.items():
            times[name].append(_trial(operator, k, encoder, images))
    return times


def _trial(operator: Operator, k: int, encoder: nn.Module, images: Tensor) -> tuple[float, float]:
    began = time.perf_counter()
    query, candidates = encoder(images).split([1, len(images) - 1])
    keys = -(query - candidates).square().sum(-1)
    embedded = time.perf_counter()
    chosen = operator(keys, k, TEMPERATURE)
    ended = time.perf_counter()
    del chosen  # not before, so that the time to free the graph does not count
    return embedded - began, ended - embedded


def _encoder() -> nn.Module:
    """Convnet for MNIST of Grover et al., with random weights."""
    first = [nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(800, 500), nn.ReLU())


def _seconds(times: list[float]) -> Measured:
    return Measured(fmean(times), min(times))


def _ratio(above: Measured, below: Measured) -> Measured:
    return Measured(above.mean / below.mean, above.best / below.best)
