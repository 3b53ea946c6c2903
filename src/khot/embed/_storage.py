"""What a fitted embedding has to store beside its encoder, and back."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from khot._estimators.fitting import find_device
from khot._estimators.storage import discard, read_model, read_numbers, write_model
from khot.embed._rows import Shift
from khot.embed.encoders import build
from khot.errors import ModelFileError

KIND = "embedding"
BESIDE = ("table.json", "points.npy", "map.png", "map.html")  # that the command line writes into the same folder


def write(folder: Path, model: Any) -> None:
    """Write a fitted embedding."""
    numbers = {"estimator": type(model).__name__}
    numbers |= {"features": model.n_features_in_, "components": int(model._n_features_out)}
    tensors = {
        "mean": torch.from_numpy(model.shift_.mean),
        "scale": torch.from_numpy(model.shift_.scale),
    }
    write_model(folder, KIND, model, numbers, tensors, BESIDE)
    discard(folder, BESIDE)


def read(folder: Path, model: Any, encoder: nn.Module | None) -> Any:
    """Make an unfitted embedding the one that was written."""
    kind = read_numbers(folder, KIND).get("estimator")
    if kind != type(model).__name__:
        raise ModelFileError(f"{folder} holds a {kind}, not a {type(model).__name__}: load it with khot.embed.load")

    def restore(numbers: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        model.n_features_in_, model._n_features_out = numbers["features"], numbers["components"]
        model.shift_ = Shift(tensors["mean"].numpy(), tensors["scale"].numpy())

    def make(name: str) -> nn.Module:
        return build(name, model.n_features_in_, model._n_features_out)

    read_model(folder, KIND, model, restore, make, encoder)
    model.encoder_ = model.encoder_.to(find_device(model.device))
    return model
