"""Training of an embedding with its parameters, and errors that say what is wrong with them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import _checks
from khot._estimators.fitting import check_resume, equal_shares, find_device
from khot.embed._inputs import dense
from khot.embed._objective import BatchLoss, FixedLoss
from khot.embed._pretraining import pretrain
from khot.embed._scaling import SCALES
from khot.embed.logits import check_alpha
from khot.errors import InvalidValueError
from khot.training import Adam, OneCycle, Run, Settings, fit
from khot.training.folders import check_about

_PEAK = 1e-2  # highest learning rate of a cycle


def check_parameters(model: Any, rows: int) -> int:
    """Check parameters that `khot.training` would accept or call by other names, and return the batch size."""
    for name in ("n_components", "batch_size", "epochs", "devices"):
        _checks.whole_number(name, getattr(model, name), least=1)
    _checks.choice("scale", model.scale, SCALES)
    if model.input_components is not None:
        most, hint = min(rows, model.n_features_in_), "the number of rows or columns; or pass None for all columns"
        _checks.whole_number("input_components", model.input_components, least=1, most=most, hint=hint)
    if model.pretrain:
        _checks.whole_number("pretrain_epochs", model.pretrain_epochs, least=1)
    _checks.below_one("dropout", _checks.not_negative("dropout", model.dropout), "pass a share such as 0.2")
    check_resume(model)
    find_device(model.device)
    batch = equal_shares(min(model.batch_size, rows), model.devices)
    if batch < 2:
        raise InvalidValueError(f"batch_size must be at least 2, but got {model.batch_size}: neighbours are pairs")
    return batch


def degrees(alpha: Any, dimensions: int) -> float:
    """Degrees of freedom of a Student-t density; "auto" is one less than the number of dimensions."""
    if isinstance(alpha, str):
        _checks.choice("alpha", alpha, ("auto",))
        return float(max(1, dimensions - 1))
    return check_alpha(alpha)


def _rate(rate: Any, steps: int) -> Any:
    """Learning rate or schedule; "cycle" is one cycle of `steps` steps."""
    if not isinstance(rate, str):
        return rate
    _checks.choice("learning_rate", rate, ("cycle",))
    return OneCycle(_PEAK, steps)


def train(model: Any, module: nn.Module, X: Any, loss: BatchLoss, batch: int, folder: Path) -> Run:  # noqa: N803
    """Train the encoder `module` with the parameters of the estimator `model`."""
    scaling, seed = loss.scaling, loss.seed
    about = {"scale": model.scale, "input_components": model.input_components, "pretrain": bool(model.pretrain)}
    options = {"resume": model.resume, "about": about, "device": model.device, "devices": model.devices}
    check_about(folder / "embedding", about)
    if model.pretrain:
        pretrain(module, X, scaling, model.pretrain_epochs, batch, seed, folder / "pretraining", **options)
    per_epoch, temperature = X.shape[0] // batch, getattr(model, "temperature", 1.0)
    validation = None
    if callable(temperature):  # losses at different temperatures cannot be compared
        some = np.sort(np.random.RandomState(seed).permutation(X.shape[0])[:batch])
        last: Any = temperature(model.epochs * per_epoch - 1)
        validation = FixedLoss(loss.objective, scaling(torch.tensor(dense(X[some]))), last, seed)
    settings = Settings(
        epochs=model.epochs,
        batch_size=batch,
        learning_rate=_rate(model.learning_rate, model.epochs * per_epoch),
        optimizer=Adam() if model.optimizer is None else model.optimizer,
        temperature=temperature,  # pyright: ignore[reportArgumentType]
        monitor=None if validation is None else "loss",
        random_state=seed,
    )
    options |= {"folder": folder / "embedding", "verbose": bool(model.verbose)}
    return fit(module, loss, X, settings, validate=validation, **options)
