"""From the parameters of an explainer to a trained module: check them, ask the model, train at the best temperature."""

import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from khot import _checks
from khot._estimators.fitting import check_resume, find_device
from khot.errors import DivergedError, InvalidValueError
from khot.explain._inputs import Limits, check_network, class_names, find_masker
from khot.explain._module import Explainer, new_module, try_predictor, try_selector
from khot.explain._objective import ExplainLoss, Rows, Validation
from khot.explain.black_box import BlackBox
from khot.explain.maskers import Items, Masker
from khot.explain.maskers.items import masked
from khot.explain.samplers import find as find_sampler
from khot.explain.samplers import random_subsets
from khot.training import RMSprop, Run, Settings, fit

TEMPERATURES = (0.1, 0.5, 1.0, 2.0, 5.0)
_MOST_ITEMS, _MOST_CHOICES = 10**6, 100
_CHOICES, _FEW_ROWS = 3, 2000  # random subsets of each row by default, for fewer rows than this
_LEAST_STEPS = 50  # of a training before its loss is looked at
_LEARNT, _NOTHING = 0.02, 1e-4  # least share of what can be learnt, and a loss that is nothing to be learnt


def check_parameters(explainer: Any) -> None:
    """Refuse parameters that cannot be used, before any work is done."""
    _checks.whole_number("k", explainer.k, least=1, most=_MOST_ITEMS)
    masker = find_masker(explainer.masker)
    for name in ("selector", "predictor"):
        check_network(name, getattr(explainer, name), masker)
    find_sampler(explainer.sampler, _checks.relaxation(explainer.relaxation))
    least = 1 if _checks.flag("for_class", explainer.for_class) else 0
    if explainer.random_choices is not None:
        _checks.whole_number("random_choices", explainer.random_choices, least=least, most=_MOST_CHOICES)
    if not _searches(explainer):
        _checks.positive("temperature", explainer.temperature)
    share = _checks.positive("validation_share", explainer.validation_share)
    _checks.below_one("validation_share", share, "pass the share to hold out")
    _checks.whole_number("model_batch_size", explainer.model_batch_size, least=1)
    class_names(explainer.class_names)
    if _checks.whole_number("random_state", explainer.random_state, least=0) >= 2**32:
        raise InvalidValueError(
            f"random_state must be at most 2^32 - 1, but got {explainer.random_state}: pass a smaller one"
        )
    check_resume(explainer)
    find_device(explainer.device)
    for epochs in (explainer.epochs, explainer.search_epochs):
        _settings(explainer, 1.0, epochs, explainer.batch_size)


def _searches(explainer: Any) -> bool:
    """Whether the temperature is searched for."""
    return isinstance(explainer.temperature, str) and explainer.temperature == "search"


def choices_per_row(explainer: Any, rows: int) -> int:
    """Number of random subsets of each row that the model is queried on."""
    if explainer.random_choices is not None:
        return int(explainer.random_choices)
    return _CHOICES if explainer.for_class or rows < _FEW_ROWS else 0


def about(explainer: Any) -> dict[str, Any]:
    """What distinguishes trainings, apart from their networks, settings and data."""
    return {
        "masker": find_masker(explainer.masker),
        **{name: getattr(explainer, name) for name in ("k", "for_class", "random_state")},
        "random_choices": explainer.random_choices_,
    }


def ask(explainer: Any, black_box: BlackBox, X: Any, items: Items, limits: Limits) -> Rows:  # noqa: N803
    """The rows with the model's outputs, and with its answers to random subsets of their items.

    Networks and names that do not fit are refused before the second query.
    """
    try_selector(new_module(explainer, classes=2), items, explainer.for_class)
    batches = black_box.ask_in_batches(X)
    first = next(batches)
    _check_classes(explainer, items, first.shape[1])
    outputs = torch.from_numpy(np.concatenate([first, *batches]))
    rows = Rows(items.codes, limits.eligible, limits.forced, outputs)
    if explainer.for_class:
        classes = outputs.argmax(1)
        target = functional.one_hot(classes, outputs.shape[1]).to(outputs.dtype)
        rows = replace(rows, classes=classes, outputs=target)
    if not explainer.random_choices_:
        return rows
    subsets = random_subsets(*limits, explainer.k, explainer.random_choices_, int(explainer.random_state))
    return replace(rows, choices=subsets, answers=answers_to(black_box, explainer.masker_, X, subsets))


def _check_classes(explainer: Any, items: Items, classes: int) -> None:
    names = class_names(explainer.class_names)
    if names is not None and len(names) != classes:
        raise InvalidValueError(
            f"class_names must name the {classes} classes of the model, but got {names}: pass as many"
        )
    try_predictor(new_module(explainer, classes), items, classes)


def answers_to(black_box: BlackBox, masker: Masker, X: Any, subsets: Tensor) -> Tensor:  # noqa: N803
    """Class probabilities (n, draws, classes) that the model predicts from subsets (n, draws, items) of the items."""
    answers = [
        black_box.ask(masked(masker, X, flags.numpy()), f"rows masked at random (draw {draw})")
        for draw, flags in enumerate(subsets.unbind(1), start=1)
    ]
    return torch.from_numpy(np.stack(answers, 1))


def train(explainer: Any, rows: Rows, folder: Path) -> None:
    """Train networks on most of the rows, at the temperature with the least loss on the others, and keep them."""
    order = np.random.RandomState(explainer.random_state).permutation(len(rows))
    first = max(1, int(explainer.validation_share * len(order)))
    training = _Training(explainer, rows.take(order[first:]), rows.take(order[:first]))
    epochs, losses, seconds = explainer.epochs, {}, 0.0
    if _searches(explainer):
        short = max(explainer.search_epochs, training.least_epochs)
        epochs = max(epochs, short)
        for value in TEMPERATURES:
            losses[value], took = training.briefly(value, short, folder / f"search-{value:g}")
            seconds += took
            if explainer.verbose:
                print(f"temperature {value:g}: validation loss {losses[value]:.4f} after a short training")
    temperature = min(losses, key=lambda value: losses[value]) if losses else float(explainer.temperature)
    if explainer.verbose:
        print(f"temperature {temperature:g}:")
    module, run = training.at(temperature, epochs, folder / "training", bool(explainer.verbose))
    _warn_of_nothing_learnt(training.kept, training.held_out, run.best["validation"])
    explainer.module_, explainer.history_, explainer.seconds_ = module, run.history, seconds + _seconds(run)
    explainer.temperature_, explainer.search_ = temperature, losses


@dataclass(frozen=True)
class _Training:
    """What the trainings at all temperatures have in common."""

    explainer: Any
    kept: Rows
    held_out: Rows

    @property
    def least_epochs(self) -> int:
        """Number of epochs until a loss means something: with few rows, an epoch has few steps."""
        return math.ceil(_LEAST_STEPS / (len(self.kept) // min(self.explainer.batch_size, len(self.kept))))

    def briefly(self, temperature: float, epochs: int, folder: Path) -> tuple[float, float]:
        """The loss on held-out rows after a short training, infinity if it diverges, and the seconds it took."""
        try:
            _, run = self.at(temperature, epochs, folder, verbose=False)
        except DivergedError:
            return math.inf, 0.0
        loss = run.best["validation"]["loss"]
        return math.inf if loss is None else loss, _seconds(run)

    def at(self, temperature: float, epochs: int, folder: Path, verbose: bool) -> tuple[Explainer, Run]:
        """New networks, trained at one temperature."""
        explainer, kept = self.explainer, self.kept
        settings = _settings(explainer, temperature, epochs, min(explainer.batch_size, len(kept)))
        if settings.patience is not None:
            settings = replace(settings, patience=max(settings.patience, self.least_epochs))
        module = new_module(explainer, kept.outputs.shape[1])
        loss = ExplainLoss(int(explainer.k), find_sampler(explainer.sampler, explainer.relaxation))
        options: dict[str, Any] = {"folder": folder, "resume": explainer.resume, "about": about(explainer)}
        options |= {"validate": Validation(self.held_out, int(explainer.k)), "device": explainer.device}
        try:
            return module, fit(module, loss, kept.tensors(), settings, verbose=verbose, **options)
        except DivergedError as error:
            error.hint = "try a smaller learning_rate, or another temperature or random_state"
            raise


def _settings(explainer: Any, temperature: float, epochs: int, batch_size: int) -> Settings:
    return Settings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=explainer.learning_rate,
        optimizer=RMSprop() if explainer.optimizer is None else explainer.optimizer,
        temperature=temperature,
        averaging=explainer.averaging,
        monitor="loss",
        patience=explainer.patience,
        random_state=int(explainer.random_state),
    )


def _seconds(run: Run) -> float:
    return sum(record["seconds"] for record in run.history)


def _warn_of_nothing_learnt(kept: Rows, held_out: Rows, best: dict[str, Any]) -> None:
    """Compare the loss with the one of predicting the mean of the targets, and with the least possible."""
    if kept.classes is not None and kept.answers is not None and held_out.answers is not None:
        known, targets, loss = kept.answers.flatten(0, 1), held_out.answers.flatten(0, 1), best["answers"]
    else:
        known, targets, loss = kept.outputs, held_out.outputs, best["loss"]
    constant = -torch.xlogy(targets, known.mean(0)).sum(1).mean().item()
    least = torch.special.entr(targets).sum(1).mean().item()
    if loss is not None and constant - least > _NOTHING and constant - loss < _LEARNT * (constant - least):
        warnings.warn(
            f"the predictor hardly knows from the chosen items what the model predicts: its loss on held-out rows is "
            f"{loss:.4f}, that of a constant prediction {constant:.4f}; take more rows, more epochs, or a larger k",
            stacklevel=4,
        )
