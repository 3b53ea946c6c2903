"""Ablation of maps: from the paper's settings to ours, one change at a time, also for parametric t-SNE.

Trainings are short, on 20,000 digits of MNIST. Quality is measured on 5,000 other training digits, not on the test
digits, because the settings of `embed` were chosen by it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from khot.embed import TUNED, ParametricTSNE, SubsetSNE
from khot.experiments.embed import Plan, measure, rows_of
from khot.experiments.runs import spent, write_rows

PLAN = Plan("large", epochs=40, pretrain_epochs=5, mutual=(2,))
ROWS, HELD_OUT = 20_000, 5_000
_CYCLE = ("one cycle of the learning rate", {"learning_rate": TUNED["learning_rate"]})
_BATCHES = (f"batches of {PLAN.own_batch_size:,}", {"batch_size": PLAN.own_batch_size})
_DROPOUT = (f"{TUNED['dropout']:.0%} of the inputs left out", {"dropout": TUNED["dropout"]})
_SEED = ("another seed", {"random_state": 1})
_PERPLEXITY = {"scale": "auto", "perplexity": TUNED["perplexity"]}
CHANGES: dict[str, list[tuple[str, dict[str, Any]]]] = {  # each includes those before it
    "subset": [
        ("the paper's settings", {"scale": "raw"}),
        ("no bias under the logarithm", {"bias": TUNED["bias"]}),
        ("noise in the input space alone", {"noise": TUNED["noise"]}),
        (f"temperature {TUNED['temperature']:g}", {"temperature": TUNED["temperature"]}),
        ("Student-t density in the embedding", {"alpha": TUNED["alpha"]}),
        (f"distances by perplexity {TUNED['perplexity']:g}, centred rows", _PERPLEXITY),
        _CYCLE,
        (f"{TUNED['samples']} draws of the noise", {"samples": TUNED["samples"]}),
        _DROPOUT,
        _BATCHES,
        ("neighbours count in both directions", {"mutual": True}),
        _SEED,
    ],
    "tsne": [
        ("perplexity 30, rows as they are", {"scale": "raw", "perplexity": 30.0, "alpha": TUNED["alpha"]}),
        (f"perplexity {TUNED['perplexity']:g}, centred rows", _PERPLEXITY),
        _CYCLE,
        _DROPOUT,
        _BATCHES,
        _SEED,
    ],
}


@dataclass(frozen=True)
class Row:
    """Quality of the map after a change; the error is in percent."""

    method: str
    change: str
    trustworthiness: float
    knn_error: float
    minutes: float
    processor_minutes: float | None


def models(folder: Path) -> list[tuple[str, str, Any]]:
    """Methods, changes and unfitted estimators."""
    found = []
    for method, changes in CHANGES.items():
        options: dict[str, Any] = {}
        for number, (change, more) in enumerate(changes):
            options |= more
            chosen: dict[str, Any] = PLAN.options(0, folder / f"ablation-{method}-{number}") | options
            found.append((method, change, (SubsetSNE if method == "subset" else ParametricTSNE)(2, **chosen)))
    return found


def run(folder: Path, report: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """Train with every change, or continue the trainings in `folder`. Each row is reported when it is finished."""
    data, _, _ = rows_of("mnist", PLAN, 0)
    train, held_out = data.take(np.arange(ROWS)), data.take(np.arange(ROWS, ROWS + HELD_OUT))
    rows = []
    for method, change, model in models(folder):
        points = model.fit(train.inputs).transform(train.inputs)
        trust, error = measure(train, held_out, points, model.transform(held_out.inputs))
        rows.append(Row(method, change, round(trust, 4), round(error, 2), **spent(model.folder)))
        report(rows[-1])
    return rows


def write(rows: list[Row], folder: Path) -> Path:
    """Write `embed-ablation.json` into an existing folder and return its path."""
    return write_rows(folder / "embed-ablation.json", rows, asdict(PLAN) | {"rows": ROWS, "held_out": HELD_OUT})


def line(row: Row) -> str:
    """Row as text."""
    return f"{row.method:<8}{row.change:<48}{row.trustworthiness:>8.4f}{row.knn_error:>8.2f}{row.minutes:>8.1f}"
