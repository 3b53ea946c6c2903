"""Training of the classifier with its parameters, and errors that say what is wrong with them."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from khot import _checks
from khot._estimators.fitting import check_resume, equal_shares, find_device
from khot._estimators.scaling import Scaling
from khot.errors import InvalidValueError
from khot.neighbors._objective import NeighborLoss
from khot.neighbors.augmentation import CHOICES
from khot.neighbors.validation import Validation
from khot.training import Adam, Run, Settings, fit
from khot.training.folders import digest_of


def check_parameters(model: Any, X: np.ndarray) -> None:  # noqa: N803
    """Refuse parameters that `khot.training` would accept, or would call by other names."""
    check_neighbors(model.n_neighbors, len(X))
    _checks.relaxation(model.relaxation)
    if _checks.whole_number("n_candidates", model.n_candidates, least=1) < model.n_neighbors:
        raise InvalidValueError(
            f"n_candidates must be at least n_neighbors, {model.n_neighbors}, but got {model.n_candidates}: "
            "pass a larger number"
        )
    for name in ("batch_size", "devices"):
        _checks.whole_number(name, getattr(model, name), least=1)
    share = _checks.not_negative("validation_share", model.validation_share)
    _checks.below_one("validation_share", share, "pass the share to hold out")
    check_resume(model)
    find_device(model.device)
    if _checks.choice("augment", model.augment, CHOICES) != "none" and X.ndim == 2:
        raise InvalidValueError(f"augment is for images, but got a table of shape {X.shape}: pass augment='none'")


def check_neighbors(k: Any, references: int) -> int:
    """Refuse more neighbours than references."""
    if _checks.whole_number("n_neighbors", k, least=1) > references:
        raise InvalidValueError(
            f"n_neighbors must be at most the number of reference rows, n_samples = {references}, "
            f"but got {k}: choose fewer neighbours or add rows"
        )
    return k


def train(
    model: Any, module: nn.Module, rows: np.ndarray, labels: np.ndarray, scaling: Scaling, seed: int, folder: Path
) -> Run:
    """Train the encoder `module` with the parameters of the classifier `model`."""
    order = np.random.RandomState(seed).permutation(len(rows))
    held_out = int(model.validation_share * len(rows))
    kept, held = np.sort(order[held_out:]), np.sort(order[:held_out])
    if len(kept) < 2 or len(np.unique(labels[kept])) < 2:
        raise InvalidValueError(
            f"validation_share must leave rows of two classes for the training, but {model.validation_share} of "
            f"{len(rows)} rows leaves {len(kept)}: choose a smaller one"
        )
    candidates, batch = (
        equal_shares(min(size, len(kept)), model.devices) for size in (model.n_candidates, model.batch_size)
    )
    k = min(model.n_neighbors, candidates)
    data = digest_of(rows, labels, scaling.mean, scaling.scale)
    loss = NeighborLoss(rows[kept], labels[kept], scaling, k, candidates, model.relaxation, model.augment, seed, data)
    validation = None
    if held_out:
        validation = Validation(rows[held], labels[held], loss.inputs, loss.labels, scaling, model.n_neighbors)
    settings = Settings(
        epochs=model.epochs,
        batch_size=batch,
        learning_rate=model.learning_rate,
        optimizer=Adam() if model.optimizer is None else model.optimizer,
        temperature=model.temperature,
        monitor="accuracy" if held_out else None,
        maximize=bool(held_out),
        random_state=seed,
    )
    options = {"device": model.device, "devices": model.devices, "precision": model.precision}
    options |= {"folder": folder, "resume": model.resume, "verbose": bool(model.verbose)}
    return fit(module, loss, (loss.inputs, loss.labels), settings, validate=validation, **options)
