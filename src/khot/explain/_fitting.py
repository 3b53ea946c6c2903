"""From the parameters of an explainer and its rows to trained networks, at the best temperature."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from khot.errors import DivergedError
from khot.explain._by_class import SelectorByClass
from khot.explain._training import Explainer, ExplainLoss, Rows, Validation
from khot.explain._warnings import warn_of_nothing_learnt
from khot.explain.samplers import find as find_sampler
from khot.training import Run, Settings, fit

TEMPERATURES = (0.1, 0.5, 1.0, 2.0, 5.0)
_LEAST_STEPS = 50  # of a training, before its loss is looked at


@dataclass(frozen=True)
class Trained:
    """Networks, the losses of their epochs, and how their temperature was found; the seconds are those of all of it."""

    module: Explainer
    history: list[dict[str, Any]]
    temperature: float
    search: dict[float, float]
    seconds: float


def train(model: Any, rows: Rows, folder: Path) -> Trained:
    """Train networks with the parameters of the explainer `model`."""
    order = np.random.RandomState(model.random_state).permutation(len(rows["codes"]))
    first = max(1, int(model.validation_share * len(order)))
    held_out, kept = ({name: value[part] for name, value in rows.items()} for part in (order[:first], order[first:]))
    search, seconds, epochs = {}, 0.0, model.epochs
    if model.temperature == "search":
        short = max(model.search_epochs, _least_epochs(model, kept))
        for value in TEMPERATURES:
            search[value], took = _try(model, kept, held_out, value, short, folder / f"search-{value:g}")
            seconds += took
            if model.verbose:
                print(f"temperature {value:g}: validation loss {search[value]:.4f} after a short training")
        temperature, epochs = min(search, key=lambda value: search[value]), max(epochs, short)
    else:
        temperature = float(model.temperature)
    module = new_networks(model, model.classes_)
    if model.verbose:
        print(f"temperature {temperature:g}:")
    run = _fit(model, module, kept, held_out, temperature, epochs, folder / "training", verbose=bool(model.verbose))
    best = run.best["validation"]
    if model.for_class:
        warn_of_nothing_learnt(kept["answers"].flatten(0, 1), held_out["answers"].flatten(0, 1), best["answers"])
    else:
        warn_of_nothing_learnt(kept["outputs"], held_out["outputs"], best["loss"])
    return Trained(module, run.history, temperature, search, seconds + _seconds(run))


def new_networks(model: Any, classes: int) -> Explainer:
    """Those of the masker, or copies of the user's."""

    def selector() -> nn.Module:
        return model.masker_.selector() if model.selector is None else copy.deepcopy(model.selector)

    with torch.random.fork_rng([]), _single_precision():
        torch.manual_seed(model.random_state)
        chooses = SelectorByClass([selector() for _ in range(classes)]) if model.for_class else selector()
        own = model.predictor
        return Explainer(chooses, model.masker_.predictor(classes) if own is None else copy.deepcopy(own))


@contextmanager
def _single_precision() -> Iterator[None]:
    """New networks are in the precision of the codes, whatever the default of torch."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def settings(model: Any, temperature: float, epochs: int, batch_size: int) -> Settings:
    """Those of a training with the parameters of the explainer."""
    return Settings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=model.learning_rate,
        optimizer=model.optimizer,
        temperature=temperature,
        averaging=model.averaging,
        monitor="loss",
        patience=model.patience,
        random_state=model.random_state,
    )


def about(model: Any) -> dict[str, Any]:
    """What tells trainings apart, beside the networks and the data."""
    names = ("masker", "k", "for_class", "random_state")
    return {name: getattr(model, name) for name in names} | {"random_choices": model.random_choices_}


def _try(model: Any, kept: Rows, held_out: Rows, temperature: float, epochs: int, folder: Path) -> tuple[float, float]:
    """The loss on held-out rows after a short training, infinity if it diverges, and the seconds it took."""
    try:
        networks = new_networks(model, model.classes_)
        run = _fit(model, networks, kept, held_out, temperature, epochs, folder, verbose=False)
    except DivergedError:
        return math.inf, 0.0
    loss = run.best["validation"]["loss"]
    return math.inf if loss is None else loss, _seconds(run)


def _fit(
    model: Any,
    module: nn.Module,
    kept: Rows,
    held_out: Rows,
    temperature: float,
    epochs: int,
    folder: Path,
    verbose: bool,
) -> Run:
    chosen = settings(model, temperature, epochs, min(model.batch_size, len(kept["codes"])))
    if chosen.patience is not None:
        chosen = replace(chosen, patience=max(chosen.patience, _least_epochs(model, kept)))
    loss = ExplainLoss(model.k, find_sampler(model.sampler, model.relaxation))
    validate = Validation(held_out, model.k)
    options: dict[str, Any] = {
        "folder": folder,
        "resume": model.resume,
        "about": about(model),
        "device": model.device,
    }
    try:
        return fit(module, loss, kept, chosen, validate=validate, verbose=verbose, **options)
    except DivergedError as error:
        hint = "try a smaller learning_rate, or another temperature or random_state"
        raise DivergedError(error.what, error.checkpoint, hint) from error


def _least_epochs(model: Any, kept: Rows) -> int:
    """How many it takes for a loss to tell something: of few rows, an epoch has few steps."""
    rows = len(kept["codes"])
    return math.ceil(_LEAST_STEPS / (rows // min(model.batch_size, rows)))


def _seconds(run: Run) -> float:
    return sum(record["seconds"] for record in run.history)
