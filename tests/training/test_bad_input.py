"""Bad input is refused before anything is written."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from khot.errors import InvalidTypeError, InvalidValueError
from khot.training import Settings, fit
from tests.training.problems import data, error_rate, network, squared_error

GOOD = {"module": network(), "loss": squared_error, "data": data(), "settings": Settings(epochs=1, batch_size=25)}
MONITORED = Settings(epochs=1, batch_size=25, monitor="error")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"module": squared_error}, InvalidTypeError, "module must be a torch.nn.modules.module.Module"),
        ({"module": nn.Tanh()}, InvalidValueError, "no parameter that requires a gradient"),
        ({"loss": "mse"}, InvalidTypeError, r"loss must be a function of \(module, batch, step\), but got 'mse'"),
        ({"data": [1.0, 2.0]}, InvalidTypeError, "data must be a tensor, an array.*got float as part 0"),
        ({"data": None}, InvalidTypeError, "data must be a tensor, an array.*got NoneType"),
        ({"data": ()}, InvalidValueError, "data must have a tensor or array"),
        ({"data": np.array([["a"]] * 9)}, InvalidTypeError, "part 0 has dtype <U1"),
        ({"data": {"x": np.array([[None]] * 9)}}, InvalidTypeError, "part x has dtype object"),
        ({"data": {"x": torch.zeros(())}}, InvalidValueError, "data must consist of rows, but part x"),
        ({"data": (torch.zeros(30), np.zeros(31))}, InvalidValueError, "the same number of rows.*'0': 30, '1': 31"),
        ({"data": torch.zeros(20, 5)}, InvalidValueError, "batch_size must be at most .* 20, but got 25"),
        ({"settings": {"epochs": 3}}, InvalidTypeError, "settings must be a khot.training.settings.Settings"),
        ({"validate": error_rate}, InvalidValueError, "validate and settings.monitor belong together"),
        ({"settings": MONITORED}, InvalidValueError, "validate and settings.monitor belong together"),
        ({"settings": MONITORED, "validate": 3}, InvalidTypeError, "validate must be a function"),
        ({"device": "abacus"}, InvalidValueError, "device must be one of cpu, .* but got 'abacus'"),
        ({"precision": "8"}, InvalidValueError, "precision must be one of"),
        ({"devices": 0}, InvalidValueError, "devices must be at least 1"),
        ({"devices": "2"}, InvalidTypeError, "devices must be an int"),
        ({"devices": 2}, InvalidValueError, "batch_size must be a multiple of devices, 2, but got 25"),
        ({"checkpoint_seconds": 0}, InvalidValueError, "checkpoint_seconds must be positive"),
    ],
)
def test_arguments(tmp_path: Path, change: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        fit(**{**GOOD, **change}, folder=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_loss_without_a_gradient(tmp_path: Path):
    with pytest.raises(InvalidValueError, match="one without a gradient"):
        fit(**GOOD | {"loss": lambda module, batch, step: torch.zeros(())}, folder=tmp_path / "run")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without it")
def test_device_that_is_not_there(tmp_path: Path):
    with pytest.raises(RuntimeError, match="CUDA"):
        fit(**GOOD, folder=tmp_path / "run", device="cuda")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"batch_size": 2.0}, "batch_size must be an int"),
        ({"learning_rate": -0.1}, "learning_rate must be positive"),
        ({"learning_rate": lambda step: float("nan")}, "learning_rate must be positive"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"optimizer": "adam"}, "optimizer must be a function of the parameters"),
        ({"clip_norm": 0}, "clip_norm must be positive"),
        ({"averaging": 1}, "averaging must lie below 1"),
        ({"averaging": -0.5}, "averaging must be positive"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"monitor": 3}, "monitor must be a str"),
        ({"maximize": True}, "maximize needs a monitored number"),
        ({"random_state": 1.5}, "random_state must be an int"),
    ],
)
def test_settings(change: dict, message: str):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        Settings(**change)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda module, batch, step: module(batch[0]), r"tensor of shape \(\), but got shape \(25, 1\): take its mean"),
        (lambda module, batch, step: 1.0, r"tensor of shape \(\), but got float"),
    ],
)
def test_losses(tmp_path: Path, loss, message: str):
    with pytest.raises(InvalidTypeError, match=message):
        fit(**{**GOOD, "loss": loss}, folder=tmp_path)


@pytest.mark.parametrize(
    ("validate", "message"),
    [
        (lambda module: 0.5, "validate must return a dict of numbers, but got float"),
        (lambda module: {"loss": 0.5}, r"monitored number 'error', but got \['loss'\]"),
    ],
)
def test_validations(tmp_path: Path, validate, message: str):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        fit(**{**GOOD, "settings": MONITORED}, validate=validate, folder=tmp_path)


def test_state_that_is_no_tensor(tmp_path: Path):
    class WithExtraState(nn.Linear):
        def get_extra_state(self):
            return {"anything": object()}

        def set_extra_state(self, state):
            pass

    with pytest.raises(InvalidTypeError, match="must consist of tensors, but _extra_state is of type dict"):
        fit(**{**GOOD, "module": WithExtraState(5, 1)}, folder=tmp_path / "run")
    assert not list(tmp_path.iterdir())
