"""The paper's accuracy table of stochastic k nearest neighbours, compared with NeuralSort and a plain network.

The encoders are smaller than the paper's and trained for minutes on a CPU, not for 200 epochs on a GPU: first on small
images, then on images of full size, with one cycle of the learning rate. The images of a batch are both queries and
candidates. The temperature of a method (or the learning rate of the plain network) is chosen on held-out images after a
short training with each.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from khot import _checks, datasets
from khot._estimators.fitting import new_network
from khot._estimators.scaling import Scaling, standard_scaling
from khot._renamed import renamed
from khot._report.neighbors import accuracy_curves, neighbor_rows
from khot.datasets import Rows
from khot.experiments._knn_training import METHODS, Votes, as_images, classify, loss_of, resized, validation_of
from khot.experiments.runs import find_plan, machine, percent, read_results, spent, write_result
from khot.neighbors.networks import ResNet, with_head
from khot.training import SGD, OneCycle, Run, Settings, fit

K, CANDIDATES = 9, 100
TEMPERATURES, RATES = (0.1, 1.0, 5.0, 16.0, 64.0), (0.01, 0.03, 0.1, 0.2, 0.4)
PAPER = {  # test accuracy in percent
    "mnist": {"subset": 99.3, "neuralsort": 99.4, "cnn": 99.4},
    "fashion-mnist": {"subset": 93.6, "neuralsort": 93.4, "cnn": 93.4},
    "cifar10": {"subset": 90.1, "neuralsort": 89.5, "cnn": 95.1},
}
PAPER_SETTING = "a small convnet for MNIST, ResNet-18 for the others, 200 epochs, GPU"


@dataclass(frozen=True)
class Stage:
    """Number of epochs on images of one size."""

    epochs: int
    pixels: int


@dataclass(frozen=True)
class Plan:
    """Settings of a training that all methods share."""

    width: int
    stages: tuple[Stage, ...]
    augment: str
    held_out: int = 5000
    references: int = 10_000  # training images that vote for the held-out ones after an epoch
    batch_size: int = 200
    samples: int = 4  # relaxed samples of each query
    learning_rate: float = 0.1
    weight_decay: float = 5e-4
    search_epochs: int = 1  # for each temperature, on `search_rows` images of the first size
    search_rows: int = 40_000

    @property
    def mirrored(self) -> bool:
        """Whether the test uses mirror images as well, because the training does."""
        return self.augment in ("flip", "both")


PLANS = {
    ("quick", "digits"): Plan(
        16, (Stage(24, 8),), "crop", held_out=200, references=1000, search_epochs=12, search_rows=1000
    ),
    ("full", "mnist"): Plan(32, (Stage(3, 14), Stage(6, 28)), "crop", search_rows=20_000),
    ("full", "fashion-mnist"): Plan(32, (Stage(10, 14), Stage(22, 28)), "both"),
    ("full", "cifar10"): Plan(48, (Stage(10, 16), Stage(10, 24), Stage(4, 32)), "both"),
    ("long", "cifar10"): Plan(48, (Stage(20, 16), Stage(28, 24), Stage(22, 32)), "both"),
}


@dataclass(frozen=True)
class Result:
    """Result of `khot reproduce knn`; accuracies are in percent."""

    dataset: str
    method: str
    profile: str
    test_accuracy: float
    paper_accuracy: float | None
    paper: str
    search: dict[str, float]  # held-out accuracy for each temperature, or learning rate
    settings: dict[str, Any]
    seed: int
    minutes: float  # of all trainings, including the search
    processor_minutes: float | None
    history: list[dict[str, Any]]
    machine: dict[str, Any]


@renamed(seed="random_state")
def run(dataset: str, method: str, profile: str, folder: Path, random_state: int = 0) -> tuple[Result, Votes | None]:
    """Train and test one row of the table. Returns the votes of neighbours as well, if the method has any.

    A training that was stopped continues in `folder`.
    """
    _checks.choice("method", method, METHODS)
    plan = find_plan(PLANS, profile, dataset)
    data = datasets.load(dataset)
    place = folder / f"{dataset}-{method}-{profile}-{random_state}"
    train, held_out = datasets.split(data.train, plan.held_out, random_state, stratified=True)
    scaling = standard_scaling(as_images(data.train))
    experiment = _Experiment(method, plan, train, held_out, scaling, random_state, place)

    found = {value: experiment.search(value) for value in (RATES if method == "cnn" else TEMPERATURES)}
    chosen = max(found, key=lambda value: found[value])
    module, stages = experiment.train(chosen)
    history = [record | {"epoch": epoch} for epoch, record in enumerate(r for stage in stages for r in stage.history)]

    right, voted = classify(method, module, data, experiment.scaling, K, plan.mirrored)
    result = Result(
        dataset=dataset,
        method=method,
        profile=profile,
        test_accuracy=percent(right),
        paper_accuracy=PAPER.get(dataset, {}).get(method),
        paper=PAPER_SETTING,
        search={f"{value:g}": percent(share) for value, share in found.items()},
        settings=_settings(method, plan, chosen, experiment.scaling),
        seed=random_state,
        **spent(place),
        history=history,
        machine=machine(),
    )
    return result, voted


def write(result: Result, voted: Votes | None, folder: Path) -> list[Path]:
    """Write `knn-<dataset>-<method>.json` and the pictures into an existing folder and return their paths."""
    name = f"knn-{result.dataset}-{result.method}" + ("-long" if result.profile == "long" else "")
    data, curves, votes = folder / f"{name}.json", folder / f"knn-{result.dataset}.png", folder / f"{name}.png"
    write_result(data, asdict(result))
    series = [
        (_name(row), [100 * record["validation"]["accuracy"] for record in row.history])
        for row in results(folder, result.dataset)
    ]
    accuracy_curves(curves, series, f"{result.dataset}: accuracy on held-out images")
    if voted is None:
        return [data, curves]
    _draw_votes(votes, result, voted)
    return [data, curves, votes]


def _draw_votes(path: Path, result: Result, voted: Votes) -> None:
    """Draw the neighbours of a correct prediction of some classes, then of some wrong predictions."""
    test, train, names = voted.data.test, voted.data.train, np.array(voted.data.classes)
    right = voted.predictions == test.labels
    firsts = [np.flatnonzero(right & (test.labels == label))[:1] for label in range(len(names))]
    shown = np.concatenate([*firsts[:6], np.flatnonzero(~right)[:4]])
    neighbor_rows(
        path,
        queries=test.inputs[shown],
        predictions=names[voted.predictions[shown]],
        labels=names[test.labels[shown]],
        neighbors=train.inputs[voted.neighbors[shown]],
        neighbor_labels=names[train.labels[voted.neighbors[shown]]],
        title=f"{result.dataset}: test images and their {K} nearest training images, {result.test_accuracy:.2f}% right",
    )


def results(folder: Path, dataset: str | None = None) -> list[Result]:
    """Results in a folder, of one dataset or of all."""
    order = [name for _, name in PLANS]

    def place(row: Result) -> tuple[int, ...]:
        return order.index(row.dataset), METHODS.index(row.method), row.profile == "long"

    return [row for row in read_results(folder, "knn-*.json", Result, place) if dataset in (None, row.dataset)]


def table(rows: list[Result]) -> str:
    """Results as text, compared with the paper's."""
    lines = [f"{'dataset':<15}{'method':<18}{'test accuracy':>14}{'paper':>8}{'difference':>12}{'minutes':>9}"]
    for row in rows:
        paper, difference = "", ""
        if row.paper_accuracy is not None:
            paper, difference = f"{row.paper_accuracy:.1f}", f"{row.test_accuracy - row.paper_accuracy:+.2f}"
        lines.append(
            f"{row.dataset:<15}{_name(row):<18}{row.test_accuracy:>14.2f}{paper:>8}{difference:>12}{row.minutes:>9.1f}"
        )
    return "\n".join([*lines, "", f"paper: {PAPER_SETTING}; here: smaller residual networks for minutes on a CPU"])


def _name(row: Result) -> str:
    return row.method + (" (long)" if row.profile == "long" else "")


@dataclass(frozen=True)
class _Experiment:
    method: str
    plan: Plan
    train_rows: Rows
    held_out: Rows
    scaling: Scaling
    random_state: int
    folder: Path

    def search(self, value: float) -> float:
        """Accuracy on held-out images after a short training with a temperature or learning rate."""
        stage = replace(self.plan.stages[0], epochs=self.plan.search_epochs)
        some = self.train_rows.take(np.arange(self.plan.search_rows))
        rate = self._cycle(value, stage.epochs * (len(some) // self.plan.batch_size))
        module = new_network(self.random_state, self._module)
        run = self._fit(module, some, stage, rate, value, self.folder / f"search-{value:g}")
        return run.best["validation"]["accuracy"]

    def train(self, value: float) -> tuple[nn.Module, list[Run]]:
        """Whole training. Returns the module with the best weights of the last stage, and the run of each stage."""
        module = new_network(self.random_state, self._module)
        runs, done, steps = [], 0, len(self.train_rows) // self.plan.batch_size
        cycle = self._cycle(value, steps * sum(stage.epochs for stage in self.plan.stages))
        for stage in self.plan.stages:
            rest, folder = _Rest(cycle, steps * done), self.folder / f"stage-{stage.pixels}"
            runs.append(self._fit(module, self.train_rows, stage, rest, value, folder))
            done += stage.epochs
        return module, runs

    def _cycle(self, value: float, steps: int) -> OneCycle:
        return OneCycle(value if self.method == "cnn" else self.plan.learning_rate, steps)

    def _module(self) -> nn.Module:
        encoder = ResNet(self.scaling.mean.size, self.plan.width)
        return with_head(encoder, int(self.train_rows.labels.max()) + 1) if self.method == "cnn" else encoder

    def _fit(self, module: nn.Module, train: Rows, stage: Stage, rate: Any, value: float, folder: Path) -> Run:
        images, others = (resized(as_images(rows), stage.pixels) for rows in (train, self.held_out))
        few = np.random.RandomState(self.random_state).permutation(len(images))[: self.plan.references]
        references = (images[few], train.labels[few])
        settings = Settings(
            epochs=stage.epochs,
            batch_size=self.plan.batch_size,
            learning_rate=rate,
            optimizer=SGD(momentum=0.9, nesterov=True, weight_decay=self.plan.weight_decay),
            temperature=1.0 if self.method == "cnn" else value,
            monitor="accuracy",
            maximize=True,
            random_state=self.random_state,
        )
        return fit(
            module,
            loss_of(self.method, self.scaling, self.plan.augment, self.plan.samples, K, CANDIDATES),
            (images, train.labels),
            settings,
            validate=validation_of(self.method, (others, self.held_out.labels), references, self.scaling, K),
            folder=folder,
            resume=True,
        )


@dataclass(frozen=True)
class _Rest:
    """Schedule that starts at a later step."""

    rate: OneCycle
    before: int

    def __call__(self, step: int) -> float:
        return self.rate(self.before + step)


def _settings(method: str, plan: Plan, chosen: float, scaling: Scaling) -> dict[str, Any]:
    encoder = ResNet(scaling.mean.size, plan.width)
    own = {"k": K, "candidates": CANDIDATES, "temperature": chosen}
    head = {"learning_rate": chosen, "loss": "cross-entropy of a linear head"}
    return {
        "encoder": f"residual network of width {plan.width}",
        "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
        **asdict(plan),
        "mirrored_test_images": plan.mirrored,
        **(head if method == "cnn" else own),
    }
