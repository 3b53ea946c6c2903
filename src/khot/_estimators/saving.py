"""Saving and loading of estimators with an encoder."""

import copy
from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from khot import _checks
from khot._estimators.fitting import find_device
from khot._estimators.scaling import Scaling
from khot._estimators.scikit_learn import BaseEstimator
from khot._estimators.storage import Kind, discard, load_weights, read_parts, reading, weights_of, write_parts
from khot.errors import ModelFileError

_ENCODER = "encoder/"
_NOT_SAVED = {"encoder", "device", "devices", "folder", "resume", "verbose"}  # about one machine or run
_NEW_NAMES = {"max_epochs": "epochs"}  # of parameters, in models that earlier versions saved


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderEstimator(BaseEstimator):
    """Base of estimators with an encoder of scaled rows, which can be saved, and the parameters that all of them have.

    Classes that derive from it say what they store besides the parameters, the encoder and the scaling.
    """

    encoder: str | nn.Module
    learning_rate: Any = 1e-3
    optimizer: Any = None
    device: str = "cpu"
    devices: int = 1
    random_state: Any = None
    verbose: bool = False
    folder: Path | str | None = None
    resume: bool = False

    _kind: ClassVar[Kind]
    encoder_: nn.Module = field(init=False)
    scaling_: Scaling = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    feature_names_in_: NDArray[Any] = field(init=False)

    def _keep(self, encoder: nn.Module, scaling: Scaling, history: list[dict[str, Any]]) -> None:
        """Take over what was learnt."""
        self.encoder_, self.scaling_, self.history_ = encoder, scaling, history

    def save(self, path: Path | str) -> None:
        """Write the fitted model into a folder: numbers as JSON, tensors as safetensors.

        Parameters
        ----------
        path : path
            A new or empty folder, or one with a model of the same kind, which is replaced.

        Raises
        ------
        ModelFileError
            If the folder holds something else.
        """
        check_is_fitted(self, "encoder_")
        numbers, tensors = self._state()
        numbers = {
            "parameters": _plain(self.get_params(deep=False)),
            "encoder": self.encoder if isinstance(self.encoder, str) else None,
            "feature_names": [str(name) for name in getattr(self, "feature_names_in_", [])],
            "history": self.history_,
            **numbers,
        }
        scaling = {"mean": torch.from_numpy(self.scaling_.mean), "scale": torch.from_numpy(self.scaling_.scale)}
        write_parts(Path(path), self._kind, numbers, tensors | scaling | weights_of(self.encoder_, _ENCODER))
        discard(Path(path), self._kind)

    @classmethod
    def load(cls, path: Path | str, encoder: nn.Module | None = None, device: str = "cpu") -> Self:
        """Read a model that was saved. It computes what the saved one did.

        Parameters
        ----------
        path : path
            The folder.
        encoder : nn.Module, optional
            If the model has an encoder of your own, a module of the same architecture. Its weights are not used.
        device : {"cpu", "cuda", "mps", "auto"}
            Where to compute.

        Returns
        -------
        estimator
            With the parameters of the saved one that are numbers, words or relaxations of khot. Other functions, such
            as schedules, are not stored.

        Raises
        ------
        ModelFileError
            If the folder holds no model of this class, or a damaged one, or if the encoder does not fit.
        """
        folder = Path(path)
        numbers, tensors = read_parts(folder, cls._kind)
        saved = numbers.get("estimator", cls.__name__)
        if saved != cls.__name__:
            raise ModelFileError(f"{folder} holds a {saved}, not a {cls.__name__}: load it with {saved}.load")
        with reading(folder):
            name, parameters = numbers["encoder"], _plain(numbers["parameters"])
        if name is None and encoder is None:
            raise ModelFileError(f"{folder} was saved with an encoder of your own: pass such a module as encoder")
        if name is not None and encoder is not None:
            raise ModelFileError(f"{folder} was saved with the encoder {name!r}: do not pass another one")
        given: Any = name if encoder is None else _checks.instance("encoder", encoder, nn.Module)
        with reading(folder):
            parameters = {_NEW_NAMES.get(old, old): value for old, value in parameters.items()}
            model = cls(encoder=given, device=device, **parameters)
            model.history_ = numbers["history"]
            if numbers["feature_names"]:
                model.feature_names_in_ = np.array(numbers["feature_names"], dtype=object)
            model.scaling_ = Scaling(tensors["mean"].numpy(), tensors["scale"].numpy())
            model._restore(numbers, tensors)
            module = copy.deepcopy(model._build())
        model.encoder_ = load_weights(folder, module, tensors, _ENCODER).to(find_device(device))
        return model

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Further numbers and tensors to save."""

    @abstractmethod
    def _restore(self, numbers: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Take over the further numbers and tensors."""

    @abstractmethod
    def _build(self) -> nn.Module:
        """New encoder of the name in `encoder`, for rows such as those of `fit`."""


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that are numbers or words, apart from those about one machine or run."""
    kinds = (bool, int, float, str, np.bool_, np.integer, np.floating)
    values = {name: value for name, value in parameters.items() if name not in _NOT_SAVED and isinstance(value, kinds)}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
