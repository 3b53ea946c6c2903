"""The paper's first figure: are relaxed samples distributed as p(S|w)?

The paper takes the top k of each relaxed vector as the chosen subset. khot's hard samples take the top k of the keys,
which is exact at every temperature. Below temperature 1 the two can differ; both are reported.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from khot import _checks
from khot._renamed import renamed
from khot._report.figures import subset_histogram
from khot.distributions import Subset
from khot.errors import InvalidValueError
from khot.experiments.runs import machine, write_result
from khot.keys import gumbel_keys
from khot.topk import hard_topk, successive_softmax

PAPER_DISTANCE = 0.016
PAPER = WEIGHTS, K, SAMPLES, TEMPERATURES = (0.1, 0.2, 0.3, 0.4), 2, 10_000, (0.1, 1.0, 10.0)
MOST_SUBSETS = 120  # subsets that a table and a histogram can show


@dataclass(frozen=True)
class Histogram:
    """Frequencies of the subsets, and their distance from p(S|w)."""

    empirical: list[float]
    interval: list[float]  # half the width of the 95% interval
    distance: float  # in total variation


@dataclass(frozen=True)
class Result:
    """Result of `khot reproduce synthetic`; subsets are lists of positions, counted from 1."""

    weights: list[float]
    k: int
    samples: int
    temperatures: list[float]
    seed: int
    subsets: list[list[int]]
    true: list[float]
    relaxed: list[Histogram]  # top k of the relaxed vector, one for each temperature
    hard: list[Histogram]  # top k of the same keys
    paper_distance: float | None  # the bound in the paper, for the problem of the paper
    seconds: float
    versions: dict[str, str]


@renamed(seed="random_state")
def run(
    weights: Sequence[float] = WEIGHTS,
    k: int = K,
    samples: int = SAMPLES,
    temperatures: Sequence[float] = TEMPERATURES,
    random_state: int = 0,
) -> Result:
    """Draw the samples and count the subsets."""
    began = time.perf_counter()
    samples = _checks.whole_number("samples", samples, least=1)
    random_state = _checks.whole_number("random_state", random_state, least=0, most=2**63 - 1)
    temperatures = [_checks.positive("temperature", t) for t in temperatures]
    if not temperatures:
        raise InvalidValueError("temperatures must hold at least one number, but got none: try 0.1 1 10")
    logits = _checks.weights(torch.tensor(weights, dtype=torch.float64)).log()
    law = Subset(logits, k)
    if law.support_size > MOST_SUBSETS:
        raise InvalidValueError(
            f"{law.n} weights have {law.support_size:,} subsets of size {k}, more than the {MOST_SUBSETS} that fit a "
            "table: pass fewer weights or another k"
        )
    outcomes = law.enumerate_support()
    true = law.log_prob(outcomes).exp()
    generator = torch.Generator().manual_seed(random_state)
    relaxed, hard = [], []
    for temperature in temperatures:
        keys = gumbel_keys(logits.expand(samples, -1), generator)
        vectors = successive_softmax(keys, k, temperature)
        relaxed.append(_histogram(hard_topk(vectors, k), outcomes, true))
        hard.append(_histogram(hard_topk(keys, k), outcomes, true))
    is_paper = (tuple(weights), k, samples, tuple(temperatures)) == PAPER
    return Result(
        weights=list(weights),
        k=k,
        samples=samples,
        temperatures=temperatures,
        seed=random_state,
        subsets=[(row.nonzero().flatten() + 1).tolist() for row in outcomes],
        true=true.tolist(),
        relaxed=relaxed,
        hard=hard,
        paper_distance=PAPER_DISTANCE if is_paper else None,
        seconds=round(time.perf_counter() - began, 3),
        versions=machine(("torch",))["versions"],
    )


def write(result: Result, folder: Path) -> tuple[Path, Path]:
    """Write `synthetic.json` and `synthetic.png` into an existing folder; returns their paths."""
    data, picture = folder / "synthetic.json", folder / "synthetic.png"
    write_result(data, asdict(result))
    subset_histogram(
        picture,
        labels=[_label(subset) for subset in result.subsets],
        true=result.true,
        series=[
            (f"t = {t:g} (TV {h.distance:.4f})", h.empirical, h.interval)
            for t, h in zip(result.temperatures, result.relaxed, strict=True)
        ],
        title=f"Subsets of {result.samples:,} relaxed samples per temperature, w = {result.weights}, k = {result.k}",
    )
    return data, picture


def table(result: Result) -> str:
    """Result as text: one row for each subset, then the distances."""
    columns = [f"t = {t:g}" for t in result.temperatures]
    lines = [f"{'subset':>10}  {'true':>7}" + "".join(f"  {column:>17}" for column in columns)]
    for i, subset in enumerate(result.subsets):
        cells = (f"{h.empirical[i]:.4f} ± {h.interval[i]:.4f}" for h in result.relaxed)
        lines.append(f"{_label(subset):>10}  {result.true[i]:7.4f}" + "".join(f"  {cell:>17}" for cell in cells))
    lines.append("")
    for name, histograms in (("relaxed", result.relaxed), ("keys", result.hard)):
        lines.append(f"{'TV, ' + name:>19}" + "".join(f"  {h.distance:17.4f}" for h in histograms))
    if result.paper_distance is not None:
        lines.append(f"{'TV, paper':>19}" + "".join(f"  {'<= ' + str(result.paper_distance):>17}" for _ in columns))
    return "\n".join(lines)


def _histogram(chosen: Tensor, outcomes: Tensor, true: Tensor) -> Histogram:
    matches = (chosen.unsqueeze(1) == outcomes).all(-1)
    empirical = matches.double().mean(0)
    interval = 1.96 * (empirical * (1 - empirical) / len(chosen)).sqrt()
    return Histogram(empirical.tolist(), interval.tolist(), 0.5 * (empirical - true).abs().sum().item())


def _label(subset: list[int]) -> str:
    return "{" + ", ".join(map(str, subset)) + "}"
