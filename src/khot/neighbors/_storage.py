"""What a fitted classifier has to store beside its encoder, and back."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import _relaxations
from khot._estimators.fitting import find_device
from khot._estimators.storage import read_model, write_model
from khot.errors import InvalidTypeError
from khot.neighbors.encoders import build
from khot.neighbors.scaling import Scaling

KIND = "classifier"
BESIDE = ("table.json",)  # that the command line writes into the same folder
_LABELS = "biufUO"  # kinds of NumPy dtypes


def write(folder: Path, model: Any) -> None:
    """Write a fitted classifier."""
    numbers = {
        "classes": {"dtype": model.classes_.dtype.str, "values": _labels(model.classes_)},
        "shape": list(model.shape_),
        "relaxation": _relaxations.name_of(model.relaxation),
    }
    tensors = {"references": model.references_, "reference_labels": torch.from_numpy(model.reference_labels_)}
    tensors |= {"mean": torch.from_numpy(model.scaling_.mean), "scale": torch.from_numpy(model.scaling_.scale)}
    write_model(folder, KIND, model, numbers, tensors, BESIDE)


def read(folder: Path, model: Any, encoder: nn.Module | None) -> Any:
    """Make an unfitted classifier the one that was written."""

    def restore(numbers: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        model.classes_ = np.array(numbers["classes"]["values"], dtype=np.dtype(numbers["classes"]["dtype"]))
        model.shape_ = tuple(numbers["shape"])
        if numbers.get("relaxation"):
            model.relaxation = _relaxations.find(numbers["relaxation"])
        model.n_features_in_ = model.shape_[0]
        model.scaling_ = Scaling(tensors["mean"].numpy(), tensors["scale"].numpy())
        model.references_, model.reference_labels_ = tensors["references"], tensors["reference_labels"].numpy()
        channels = (model.shape_[-1],)
        labels = model.reference_labels_
        if not (
            model.classes_.ndim == 1
            and len(np.unique(model.classes_)) == len(model.classes_)
            and (np.sort(model.classes_) == model.classes_).all()
            and labels.dtype == np.int64
            and labels.shape == model.references_.shape[:1]
            and 0 <= labels.min() <= labels.max() < len(model.classes_)
            and model.scaling_.mean.shape == model.scaling_.scale.shape == channels
            and np.isfinite(model.scaling_.mean).all()
            and (model.scaling_.scale > 0).all()
            and model.references_.isfinite().all()
        ):
            raise ValueError("its classes, labels, references and scaling do not fit together")

    read_model(folder, KIND, model, restore, lambda name: build(name, model.shape_), encoder)
    model.encoder_ = model.encoder_.to(find_device(model.device))
    return model


def _labels(classes: np.ndarray) -> list:
    values = classes.tolist()
    if classes.dtype.kind not in _LABELS or not all(isinstance(value, bool | int | float | str) for value in values):
        raise InvalidTypeError(
            f"labels must be numbers or texts to be saved, but got {classes.dtype} such as {values[0]!r}: convert them"
        )
    return values
