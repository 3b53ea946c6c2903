"""The paper's tables of neighbour embeddings: trustworthiness and the error of the nearest neighbour, on test rows.

`subset` and `subset-pretrain` have the paper's settings: raw squared distances, one neighbour, temperature 0.1, batches
of 1,000, 200 epochs. `subset-reversed` is the same with noise of the wrong sign, as in the code of 2019, which probably
produced the paper's numbers. `subset-ours` has our own settings, and `tsne` those of them that apply to it;
`embed_ablation` measures the effect of each of them.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot import _checks, datasets
from khot._renamed import renamed
from khot._report.maps import scatter_page, scatter_picture
from khot.datasets import Rows
from khot.embed import TUNED, ParametricTSNE, SubsetSNE, input_logits, quality, subset_sne_loss
from khot.experiments.runs import find_plan, machine, read_results, spent, write_result

METHODS = ("tsne", "subset", "subset-pretrain", "subset-reversed", "subset-ours")
DIMENSIONS = (2, 10, 30)
NEIGHBORS = 12
PAPER = {  # trustworthiness, error in percent
    ("mnist", "tsne"): {2: (0.926, 9.90), 10: (0.983, 5.38), 30: (0.983, 5.41)},
    ("mnist", "subset"): {2: (0.929, 11.80), 10: (0.998, 4.97), 30: (0.999, 3.51)},
    ("mnist", "subset-pretrain"): {2: (0.947, 8.31), 10: (0.999, 4.56), 30: (0.999, 3.05)},
    ("20newsgroups", "tsne"): {2: (0.720, 34.30), 10: (0.854, 24.40), 30: (0.866, 24.88)},
    ("20newsgroups", "subset"): {2: (0.763, 36.80), 10: (0.912, 29.39), 30: (0.929, 29.39)},
    ("20newsgroups", "subset-pretrain"): {2: (0.764, 35.11), 10: (0.905, 28.50), 30: (0.965, 28.90)},
}


@dataclass(frozen=True)
class Plan:
    """Settings of a training that all methods share."""

    encoder: str
    epochs: int = 200
    batch_size: int = 1000  # the paper's
    own_batch_size: int = 2000  # of `subset-ours` and `tsne`
    pretrain_epochs: int = 10
    mutual: tuple[int, ...] = ()  # numbers of dimensions in which `subset-ours` has mutual neighbours
    splits: int = 1  # number of random splits into training and test rows; 1 for the published split
    test_rows: int = 0
    drawn: int = 10_000  # points in the picture

    def options(self, random_state: int, folder: Path) -> dict[str, Any]:
        """Parameters of the estimator of a method, with its folder."""
        shared = {name: getattr(self, name) for name in ("encoder", "batch_size", "epochs", "pretrain_epochs")}
        return shared | {"random_state": random_state, "folder": folder, "resume": True}


PLANS = {
    ("quick", "digits"): Plan("small", epochs=60, batch_size=200, own_batch_size=200, pretrain_epochs=2, drawn=1437),
    ("full", "mnist"): Plan("large", mutual=(2,)),  # see embed_ablation
    ("full", "20newsgroups"): Plan("small", splits=5, test_rows=1242, drawn=15_000),
}
_OF_BOTH = "perplexity", "alpha", "dropout", "learning_rate"
SHARED = {name: TUNED[name] for name in _OF_BOTH}  # with t-SNE, see embed_ablation


@dataclass(frozen=True)
class Result:
    """Result of `khot reproduce embed`: means over the splits, and their standard deviations if there are several."""

    dataset: str
    method: str
    dimensions: int
    trustworthiness: float
    knn_error: float
    spread: dict[str, float]
    paper: dict[str, float] | None
    settings: dict[str, Any]
    seed: int
    minutes: float
    processor_minutes: float | None
    history: list[dict[str, Any]]
    machine: dict[str, Any]


@dataclass(frozen=True)
class _ReversedObjective:
    """Loss of the paper with noise of the wrong sign."""

    def __call__(self, rows: Tensor, embeddings: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
        return subset_sne_loss(input_logits(rows), embeddings, 1, temperature, reversed_noise=True, generator=generator)


class _ReversedSNE(SubsetSNE):
    def _objective(self, batch: int) -> Any:
        return _ReversedObjective()


def estimator(method: str, dimensions: int, plan: Plan, random_state: int, folder: Path) -> Any:
    """Unfitted estimator of a method."""
    common = plan.options(random_state, folder)
    own: dict[str, Any] = common | {"batch_size": plan.own_batch_size}
    if method == "tsne":
        return ParametricTSNE(dimensions, **SHARED, **own)
    if method == "subset-ours":
        return SubsetSNE(dimensions, **TUNED, mutual=dimensions in plan.mutual, **own)
    kind = _ReversedSNE if method == "subset-reversed" else SubsetSNE
    return kind(dimensions, scale="raw", pretrain=method != "subset", **common)


def cells(dimensions: Sequence[int], method: str | None) -> list[tuple[int, str]]:
    """Rows of the tables: all methods, or one, in each number of dimensions; reversed noise only in two."""
    methods = METHODS if method is None else (method,)
    return [(d, kind) for d in dimensions for kind in methods if d == 2 or kind != "subset-reversed"]


@renamed(seed="random_state")
def run(
    dataset: str, method: str, dimensions: int, profile: str, folder: Path, random_state: int = 0
) -> tuple[Result, Any]:
    """Train and measure one row of the tables. Returns the points (n, d) and classes of some training rows as well."""
    _checks.choice("method", method, METHODS)
    plan = find_plan(PLANS, profile, dataset)
    measured, drawn, models = [], [], []
    for split in range(random_state, random_state + plan.splits):
        train, test, classes = rows_of(dataset, plan, split)
        place = folder / f"{dataset}-{method}-d{dimensions}-{split}"
        model = estimator(method, dimensions, plan, split, place).fit(train.inputs)
        points = model.transform(train.inputs)
        measured.append(measure(train, test, points, model.transform(test.inputs)))
        drawn.append((points[: plan.drawn], np.array(classes)[train.labels[: plan.drawn]]))
        models.append(model)
    trust, error = zip(*measured, strict=True)
    spread = {"trustworthiness": statistics.stdev(trust), "knn_error": statistics.stdev(error)} if trust[1:] else {}
    paper = PAPER.get((dataset, method), {}).get(dimensions)
    result = Result(
        dataset=dataset,
        method=method,
        dimensions=dimensions,
        trustworthiness=round(statistics.fmean(trust), 4),
        knn_error=round(statistics.fmean(error), 2),
        spread={name: round(value, 4) for name, value in spread.items()},
        paper=None if paper is None else {"trustworthiness": paper[0], "knn_error": paper[1]},
        settings={**asdict(plan), "neighbors": NEIGHBORS, **_settings(models[0])},
        seed=random_state,
        **spent(*(model.folder for model in models)),
        history=models[0].history_,
        machine=machine(),
    )
    return result, drawn[0]


def measure(train: Rows, test: Rows, points: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Trustworthiness of the embedding (m, d) of test rows, and error of their nearest training rows in percent."""
    trust = quality.trustworthiness(test.inputs, others, NEIGHBORS)
    return trust, quality.knn_error(points, train.labels, others, test.labels)


def write(result: Result, drawn: tuple[np.ndarray, np.ndarray], folder: Path) -> list[Path]:
    """Write `embed-<dataset>-<method>-d<dim>.json` and, in two dimensions, the map as a picture and a page."""
    name = f"embed-{result.dataset}-{result.method}-d{result.dimensions}"
    data, picture, page = (folder / f"{name}.{kind}" for kind in ("json", "png", "html"))
    write_result(data, asdict(result))
    if result.dimensions != 2:
        return [data]
    title = f"{result.dataset}, {result.method}: trustworthiness {result.trustworthiness:.3f} of the test rows"
    scatter_picture(picture, *drawn, title)
    scatter_page(page, *drawn, title)
    return [data, picture, page]


def results(folder: Path) -> list[Result]:
    """Results in a folder."""
    order = [name for _, name in PLANS]

    def place(row: Result) -> tuple[int, ...]:
        return order.index(row.dataset), row.dimensions, METHODS.index(row.method)

    return read_results(folder, "embed-*-d*.json", Result, place)


def table(rows: list[Result]) -> str:
    """Results as text, compared with the paper's."""
    lines = [
        f"{'':34}{'trustworthiness':^22}{'1-NN error, %':^22}",
        f"{'dataset':<14}{'d':>3} {'method':<16}" + f"{'ours':>12}{'paper':>10}" * 2 + f"{'minutes':>9}",
    ]
    for row in rows:
        trust = f"{row.paper['trustworthiness']:.3f}" if row.paper else ""
        error = f"{row.paper['knn_error']:.2f}" if row.paper else ""
        lines.append(
            f"{row.dataset:<14}{row.dimensions:>3} {row.method:<16}{row.trustworthiness:>12.4f}{trust:>10}"
            f"{row.knn_error:>12.2f}{error:>10}{row.minutes:>9.1f}"
        )
    return "\n".join(lines)


def rows_of(dataset: str, plan: Plan, split: int) -> tuple[Rows, Rows, tuple[str, ...]]:
    """Training and test rows as tables of numbers between 0 and 1, and the names of the classes."""
    data = datasets.load("20newsgroups-w100" if dataset == "20newsgroups" else dataset)
    train, test = (data.train, data.test) if not plan.test_rows else datasets.split(data.train, plan.test_rows, split)
    largest = float(data.train.inputs.max())
    train, test = (
        replace(part, inputs=part.inputs.reshape(len(part), -1).astype(np.float32) / largest) for part in (train, test)
    )
    return train, test, data.classes


def _settings(model: SubsetSNE | ParametricTSNE) -> dict[str, Any]:
    """Parameters that are numbers or words, and representations of the others."""
    own = {"folder", "resume", "verbose", "device", "devices", "random_state"}
    chosen = {name: value for name, value in model.get_params(deep=False).items() if name not in own}
    return {n: v if isinstance(v, bool | int | float | str | None) else repr(v) for n, v in chosen.items()}
