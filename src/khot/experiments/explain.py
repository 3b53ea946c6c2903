"""The paper's table of explanations: post-hoc accuracy on film reviews, of relaxed subset sampling and of L2X.

A network that classifies reviews as positive or negative is explained by 10 words, another one by one sentence. Padding
is absent in khot and never chosen, whereas the published code can choose it.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from khot import _checks, datasets
from khot._estimators.fitting import new_network
from khot._report.explanations import Shown, write_columns
from khot.experiments import _black_boxes, reviews
from khot.experiments.runs import machine, percent, read_results, spent, write_result
from khot.explain import Explanation, SubsetExplainer, Tokens, fidelity
from khot.keys import gumbel_keys
from khot.topk import successive_softmax
from khot.training import Adam, RMSprop

METHODS = ("subset", "l2x", "subset-reversed", "subset-for-class")
PROFILES = ("full", "quick")
PAPER = {"imdb-word": {"subset": 91.7, "l2x": 90.7}, "imdb-sent": {"subset": 83.2, "l2x": 82.9}}
SHOWN = 20  # number of reviews on the page
_REVIEWS_AT_ONCE = 5000  # in a call of the network
_OF_THE_EXPLAINER = ("k", "batch_size", "epochs", "search_epochs", "patience", "learning_rate", "averaging")


@dataclass(frozen=True)
class Task:
    """What is explained, and the parameters of the explainer."""

    k: int
    vocabulary: int
    length: int  # words of a review, or of a sentence
    sentences: int  # of a review, or 0 if words are chosen
    batch_size: int = 40
    epochs: int = 12
    search_epochs: int = 2
    patience: int = 3
    learning_rate: float = 1e-3
    averaging: float = 0.999
    random_choices: int = 0
    reviews: int | None = None  # number of random training reviews, and of test reviews; by default all

    def take(self, rows: datasets.Rows) -> datasets.Rows:
        """The reviews that are used."""
        return rows if self.reviews is None else datasets.split(rows, self.reviews, random_state=0)[1]

    def encode(self, texts: Any, known: dict[str, int]) -> NDArray[np.int64]:
        """Reviews as word numbers."""
        if self.sentences:
            return reviews.as_sentences(texts, known, self.sentences, self.length)
        return reviews.as_words(texts, known, self.length)

    def black_box(self) -> nn.Module:
        """New network to be explained."""
        network = _black_boxes.SentenceNetwork if self.sentences else _black_boxes.WordNetwork
        return network(self.vocabulary)


TASKS = {
    "imdb-word": Task(k=10, vocabulary=5000, length=400, sentences=0),
    "imdb-sent": Task(k=1, vocabulary=20_000, length=100, sentences=15, random_choices=3),
}
QUICK = {"reviews": 4000, "epochs": 4, "search_epochs": 1}


@dataclass(frozen=True)
class Result:
    """Result that `khot reproduce explain` writes; accuracies and intervals are in percent."""

    task: str
    method: str
    post_hoc_accuracy: float  # mean over the seeds
    interval: list[float]
    by_seed: list[float]
    seeds: list[int]
    paper_accuracy: float | None
    temperature: float
    search: dict[str, float]  # loss on held-out reviews
    black_box_accuracy: float
    references: dict[str, float]  # post-hoc accuracy of k random items, and of the k items with the largest gradient
    stability: float | None  # share of items that two seeds have in common
    leakage: dict[str, float]
    fewer_than_k: float  # share of reviews for which a sample in training has fewer than min(k, present) items
    settings: dict[str, Any]
    minutes: float
    processor_minutes: float | None
    history: list[dict[str, Any]]
    shown: list[Shown]
    machine: dict[str, Any]
    profile: str = "full"

    @property
    def label(self) -> str:
        """Name of the task, and of the profile if it is not the paper's."""
        return _labelled(self.task, self.profile)


def reversed_noise(
    logits: Tensor, k: int | Tensor, temperature: float, generator: torch.Generator | None = None
) -> Tensor:
    """Relaxed subset sampling with noise of the wrong sign, log(-log u), as in the code of 2019, for comparison."""
    keys = 2 * logits - gumbel_keys(logits, generator)
    return successive_softmax(keys.where(logits > -torch.inf, logits), k, temperature)


@dataclass(frozen=True)
class Problem:
    """The reviews as word numbers, and the trained network to be explained."""

    plan: Task
    known: dict[str, int]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    black_box: nn.Module

    def predict_proba(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Class probabilities that the network predicts."""
        return _black_boxes.predict(self.black_box, rows)

    def explainer(self, method: str, temperature: float | str, seed: int, folder: Path) -> SubsetExplainer:
        """Fitted explainer, whose training is resumed if the folder holds one."""
        plan, for_class = self.plan, method == "subset-for-class"
        explainer = SubsetExplainer(
            masker=Tokens(),
            sampler={"subset-reversed": reversed_noise, "l2x": "l2x"}.get(method, "subset"),
            for_class=for_class,
            temperature=temperature,
            optimizer=Adam() if plan.sentences else RMSprop(),
            random_choices=None if for_class else plan.random_choices,
            model_batch_size=_REVIEWS_AT_ONCE,
            random_state=seed,
            folder=folder,
            resume=True,
            **{name: getattr(plan, name) for name in _OF_THE_EXPLAINER},
        )
        return explainer.fit(self.predict_proba, self.train, eligible=words(self.train))


def problem(task: str, profile: str, folder: Path) -> Problem:
    """Load the reviews, and train the network unless `folder` holds it."""
    plan, data = TASKS[_checks.choice("task", task, tuple(TASKS))], datasets.load("imdb")
    if _checks.choice("profile", profile, PROFILES) == "quick":
        plan = replace(plan, **QUICK)
    taken, tested = plan.take(data.train), plan.take(data.test)
    known = reviews.numbers_of(taken.inputs, plan.vocabulary)
    train, test = (plan.encode(part.inputs, known) for part in (taken, tested))
    black_box = new_network(0, plan.black_box)
    place = folder / f"{_labelled(task, profile)}-black-box"
    _black_boxes.train(black_box, train, taken.labels, random_state=0, folder=place)
    return Problem(plan, known, train, test, tested.labels, black_box)


def words(tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flags of the items that may be chosen: all but the token that marks the start."""
    return tokens != reviews.START if tokens.ndim == 2 else np.ones(tokens.shape[:2], bool)


def run(task: str, method: str, profile: str, seeds: tuple[int, ...], folder: Path) -> Result:
    """Explain a network with one method; `folder` keeps the network and the trainings."""
    _checks.choice("method", method, METHODS)
    given = problem(task, profile, folder)
    plan, test = given.plan, given.test
    trained = "subset" if method == "l2x" and plan.k == 1 else method  # the same for one item
    places = [folder / f"{_labelled(task, profile)}-{trained}-{seed}" for seed in seeds]
    explainers: list[SubsetExplainer] = []
    for seed, place in zip(seeds, places, strict=True):
        temperature = explainers[0].temperature_ if explainers else "search"
        explainers.append(given.explainer(trained, temperature, seed, place))
    first = explainers[0]
    explanations = [explainer.explain(test, eligible=words(test)) for explainer in explainers]
    shares = [fidelity.post_hoc_accuracy(explanation).value for explanation in explanations]
    mean = float(np.mean(shares))
    half = 1.96 * np.sqrt(mean * (1 - mean) / len(test))
    explanation, leaked = explanations[0], fidelity.leakage(explanations[0])
    return Result(
        task=task,
        method=method,
        post_hoc_accuracy=percent(mean),
        interval=[percent(mean - half), percent(mean + half)],
        by_seed=[percent(share) for share in shares],
        seeds=list(seeds),
        paper_accuracy=PAPER[task].get(method) if profile == "full" else None,
        temperature=first.temperature_,
        search={f"{value:g}": round(loss, 4) for value, loss in first.search_.items()},
        black_box_accuracy=percent((explanation.outputs[0].argmax(1) == given.test_labels).mean()),
        references=_references(given, explanation),
        stability=percent(fidelity.stability(explanations)) if seeds[1:] else None,
        leakage={name: percent(share) for name, share in asdict(leaked).items()},
        fewer_than_k=_fewer(explanation.scores, explanation.free, method, plan.k),
        settings=asdict(plan) | {"random_choices": first.random_choices_},
        **spent(*places),
        history=first.history_,
        shown=_shown(explanation, given.known, test),
        machine=machine(),
        profile=profile,
    )


def write(result: Result, folder: Path) -> list[Path]:
    """Write `explain-<task>-<method>.json`, and the page that compares the methods if both exist; return the paths."""
    name = f"explain-{result.label}"
    data, page = folder / f"{name}-{result.method}.json", folder / f"{name}.html"
    write_result(data, asdict(result))
    both = [row for row in results(folder) if row.label == result.label and row.method in ("subset", "l2x")]
    if len(both) < 2:
        return [data]
    columns = [(f"{row.method}: {row.post_hoc_accuracy:.1f}% of reviews keep their class", row.shown) for row in both]
    introduction = (
        "The class that the model predicts, with its probability from the whole review and from the marked items "
        f"alone. – is a rare word, which the model does not know. The first {SHOWN // 2} are the shortest "
        "test reviews; the others were drawn at random."
    )
    title = f"{result.label}: chosen items in {SHOWN} test reviews"
    write_columns(page, title, columns, reviews.CLASSES, introduction)
    return [data, page]


def results(folder: Path) -> list[Result]:
    """All results in a folder."""

    def make(shown: list[dict[str, Any]], **fields: Any) -> Result:
        return Result(shown=[Shown(**row) for row in shown], **fields)

    def place(row: Result) -> tuple[int, ...]:
        return list(TASKS).index(row.task), PROFILES.index(row.profile), METHODS.index(row.method)

    return read_results(folder, "explain-*.json", make, place)


def table(rows: list[Result]) -> str:
    """Table of the results as text, with the paper's for comparison."""
    heads = f"{'post-hoc %':>11}{'interval':>16}{'paper':>7}{'t':>6}{'random':>8}{'gradient':>10}{'minutes':>9}"
    lines = [f"{'task':<17}{'method':<17}" + heads]
    for row in rows:
        interval = f"{row.interval[0]:.1f} to {row.interval[1]:.1f}"
        paper = "" if row.paper_accuracy is None else f"{row.paper_accuracy:.1f}"
        lines.append(
            f"{row.label:<17}{row.method:<17}{row.post_hoc_accuracy:>11.2f}{interval:>16}{paper:>7}"
            f"{row.temperature:>6g}{row.references['random']:>8.1f}{row.references['gradient']:>10.1f}{row.minutes:>9.1f}"
        )
    return "\n".join(lines)


def _labelled(task: str, profile: str) -> str:
    return task if profile == "full" else f"{task}-{profile}"


def _references(given: Problem, explanation: Explanation) -> dict[str, float]:
    """Post-hoc accuracy of k random items, and of the k items with the largest gradient."""
    eligible, full = explanation.free, explanation.outputs[0]
    gradients = _black_boxes.gradient_scores(given.black_box, given.test)
    others = {
        "random": fidelity.random_items(eligible, given.plan.k),
        "gradient": fidelity.largest_items(gradients, eligible, given.plan.k),
    }
    ask = partial(fidelity.post_hoc_accuracy_of, given.predict_proba, explanation.masker, given.test)
    return {name: percent(ask(chosen, _REVIEWS_AT_ONCE, full).value) for name, chosen in others.items()}


def _fewer(scores: NDArray[np.float32], eligible: NDArray[np.bool_], method: str, k: int) -> float:
    """Percentage of reviews for which an exact sample, drawn as in training, has fewer than k distinct items."""
    if method != "l2x":
        return 0.0  # samples without replacement
    logits = torch.from_numpy(np.where(eligible, scores, -np.inf))
    generator = torch.Generator().manual_seed(0)
    winners = torch.stack([gumbel_keys(logits, generator).argmax(1) for _ in range(k)], 1)
    found = torch.zeros_like(logits).scatter_(1, winners, 1.0).sum(1)
    wanted = torch.from_numpy(eligible).sum(1).clamp(max=k)
    return percent((found < wanted).float().mean().item())


def _shown(explanation: Explanation, known: dict[str, int], tokens: NDArray[np.int64]) -> list[Shown]:
    """The shortest reviews, and as many random others."""
    texts = {number: word for word, number in known.items()} | {reviews.UNKNOWN: "–", reviews.START: ""}
    lengths = (tokens.reshape(len(tokens), -1) != reviews.PADDING).sum(1)
    shortest = np.argsort(lengths, kind="stable")[: SHOWN // 2]
    others = np.setdiff1d(np.arange(len(tokens)), shortest)
    rows = [*shortest, *np.random.RandomState(0).choice(others, SHOWN - len(shortest), replace=False)]
    (full, masked), shown = explanation.outputs, []
    for row in map(int, rows):
        present = np.flatnonzero(explanation.scores[row] > -np.inf)
        items = [" ".join(texts[t] for t in np.atleast_1d(tokens[row, i]) if t != reviews.PADDING) for i in present]
        chosen = np.flatnonzero(explanation.chosen[row, present]).tolist()
        shown.append(Shown(row, items, chosen, full[row].tolist(), masked[row].tolist()))
    return shown
