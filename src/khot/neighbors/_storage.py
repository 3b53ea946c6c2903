"""A fitted classifier on disk: a folder with tensors (safetensors) and numbers (JSON); nothing in it is executed."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import __version__
from khot.errors import InvalidTypeError, ModelFileError
from khot.neighbors.encoders import build, find_device
from khot.neighbors.scaling import Scaling
from khot.training._checkpoints import read_tensors, write_json, write_tensors

_NUMBERS, _TENSORS = "classifier.json", "tensors.safetensors"
_FORMAT = 1
_LABELS = "biufUO"  # kinds of NumPy dtypes


def write(folder: Path, model: Any) -> None:
    """Write a fitted classifier."""
    inside = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if (folder.exists() and not folder.is_dir()) or not inside <= {_NUMBERS, _TENSORS}:
        raise ModelFileError(f"{folder} holds other things than a classifier: save it to a new or empty folder")
    numbers = {
        "format": _FORMAT,
        "khot": __version__,
        "parameters": _plain(model.get_params(deep=False)),
        "encoder": model.encoder if isinstance(model.encoder, str) else None,
        "classes": {"dtype": model.classes_.dtype.str, "values": _labels(model.classes_)},
        "shape": list(model.shape_),
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "history": model.history_,
    }
    tensors = {f"encoder/{name}": value.detach().cpu() for name, value in model.encoder_.state_dict().items()}
    tensors |= {"references": model.references_, "reference_labels": torch.from_numpy(model.reference_labels_)}
    tensors |= {"mean": torch.from_numpy(model.scaling_.mean), "scale": torch.from_numpy(model.scaling_.scale)}
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / _TENSORS, {name: tensor.clone() for name, tensor in tensors.items()})
    write_json(folder / _NUMBERS, numbers)


def read(folder: Path, model: Any, encoder: nn.Module | None) -> Any:
    """Make an unfitted classifier the one that was written."""
    if not (folder / _NUMBERS).is_file():
        raise ModelFileError(f"{folder} is not the folder of a classifier: pass the folder that it was saved to")
    try:
        numbers = json.loads((folder / _NUMBERS).read_text(encoding="utf-8"))
        tensors = read_tensors(folder / _TENSORS)
        _restore(model, numbers, tensors)
        weights = {name.removeprefix("encoder/"): part for name, part in tensors.items() if name.startswith("encoder/")}
    except Exception as error:  # safetensors has errors of its own
        raise ModelFileError(f"{folder} cannot be read ({type(error).__name__}: {error}): save it anew") from error
    model.encoder_ = _encoder(folder, numbers["encoder"], encoder, model.shape_, weights).to(find_device(model.device))
    model.encoder = numbers["encoder"] or encoder
    return model


def _restore(model: Any, numbers: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    if numbers["format"] != _FORMAT:
        raise ValueError(f"format {numbers['format']}, of another version of khot")
    model.set_params(**numbers["parameters"])
    model.classes_ = np.array(numbers["classes"]["values"], dtype=np.dtype(numbers["classes"]["dtype"]))
    model.shape_, model.history_ = tuple(numbers["shape"]), numbers["history"]
    model.n_features_in_ = model.shape_[0]
    if numbers["feature_names"]:
        model.feature_names_in_ = np.array(numbers["feature_names"], dtype=object)
    model.scaling_ = Scaling(tensors["mean"].numpy(), tensors["scale"].numpy())
    model.references_, model.reference_labels_ = tensors["references"], tensors["reference_labels"].numpy()


def _encoder(folder: Path, name: str | None, given: nn.Module | None, shape: tuple, weights: dict) -> nn.Module:
    if name is None and given is None:
        raise ModelFileError(f"{folder} was saved with an encoder of your own: pass such a module as encoder")
    if name is not None and given is not None:
        raise ModelFileError(f"{folder} was saved with the encoder {name!r}: do not pass another one")
    module = copy.deepcopy(given) if given is not None else build(name, shape)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(f"encoder does not fit the weights in {folder} ({error}): pass the same make") from error
    return module.eval()


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """The numbers and words among the parameters that are not about one machine or run."""
    elsewhere = {"encoder", "device", "devices", "folder", "resume", "verbose"}
    kinds = (bool, int, float, str, np.integer, np.floating)
    values = {name: value for name, value in parameters.items() if name not in elsewhere and isinstance(value, kinds)}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def _labels(classes: np.ndarray) -> list:
    values = classes.tolist()
    if classes.dtype.kind not in _LABELS or not all(isinstance(value, bool | int | float | str) for value in values):
        raise InvalidTypeError(
            f"labels must be numbers or texts to be saved, but got {classes.dtype} such as {values[0]!r}: convert them"
        )
    return values
