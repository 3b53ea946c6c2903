"""What a saved classifier holds besides its parameters, encoder and scaling."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot import _relaxations
from khot.errors import InvalidTypeError

_LABELS = "biufUO"  # kinds of NumPy dtypes


def state(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Numbers and tensors to save."""
    numbers = {
        "classes": {"dtype": model.classes_.dtype.str, "values": _labels(model.classes_)},
        "shape": list(model.shape_),
        "relaxation": _relaxations.name_to_save(model.relaxation),
    }
    return numbers, {
        "references": model.references_,
        "reference_labels": torch.from_numpy(model.reference_labels_),
    }


def restore(model: Any, numbers: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Set the attributes that were saved, or raise ValueError if they do not fit together."""
    model.classes_ = np.array(numbers["classes"]["values"], dtype=np.dtype(numbers["classes"]["dtype"]))
    model.shape_ = tuple(numbers["shape"])
    model.n_features_in_ = model.shape_[0]
    if numbers.get("relaxation"):
        model.relaxation = _relaxations.find(numbers["relaxation"])
    model.references_, model.reference_labels_ = tensors["references"], tensors["reference_labels"].numpy()
    classes, labels, scaling = model.classes_, model.reference_labels_, model.scaling_
    if not (
        classes.ndim == 1
        and len(np.unique(classes)) == len(classes)
        and (np.sort(classes) == classes).all()
        and labels.dtype == np.int64
        and labels.shape == model.references_.shape[:1]
        and 0 <= labels.min() <= labels.max() < len(classes)
        and scaling.mean.shape == scaling.scale.shape == model.shape_[-1:]
        and np.isfinite(scaling.mean).all()
        and (scaling.scale > 0).all()
        and model.references_.isfinite().all()
    ):
        raise ValueError("its classes, labels, references and scaling do not fit together")


def _labels(classes: np.ndarray) -> list:
    values = classes.tolist()
    if classes.dtype.kind not in _LABELS or not all(isinstance(value, bool | int | float | str) for value in values):
        raise InvalidTypeError(
            f"labels must be numbers or texts to be saved, but got {classes.dtype} such as {values[0]!r}: convert them"
        )
    return values
