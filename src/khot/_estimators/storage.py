"""A fitted model on disk: a folder with tensors (safetensors) and numbers (JSON); nothing in it is executed."""

import copy
import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from khot import __version__, _checks
from khot._files import digest, new_file, read_tensors, save_json, save_tensors
from khot.errors import ModelFileError, one_line

_TENSORS, _ENCODER = "tensors.safetensors", "encoder/"
_FORMAT = 1
_NEW_NAMES = {"max_epochs": "epochs"}  # of parameters, in models that earlier versions saved
_ELSEWHERE = {"encoder", "device", "devices", "folder", "resume", "verbose"}  # about one machine or run


def write_model(
    folder: Path,
    kind: str,
    model: Any,
    numbers: dict[str, Any],
    tensors: dict[str, Tensor],
    beside: Collection[str] = (),
) -> None:
    """Write an estimator with an encoder and these numbers and tensors as well.

    `kind` is what it is called in errors, and the name of its JSON file. Files of the names in `beside` may stay there.
    """
    numbers = {
        "parameters": _plain(model.get_params(deep=False)),
        "encoder": model.encoder if isinstance(model.encoder, str) else None,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "history": model.history_,
        **numbers,
    }
    write_parts(folder, kind, numbers, tensors | weights_of(model.encoder_, _ENCODER), beside)


def write_parts(
    folder: Path, kind: str, numbers: dict[str, Any], tensors: dict[str, Tensor], beside: Collection[str] = ()
) -> None:
    """Write numbers and tensors such that files of two saves are told apart."""
    check_folder(folder, kind, beside)
    folder.mkdir(parents=True, exist_ok=True)
    with new_file(folder / f"{kind}.json") as words, new_file(folder / _TENSORS) as arrays:  # both, or neither
        save_tensors(arrays, {name: tensor.clone() for name, tensor in tensors.items()})
        try:
            save_json(words, {"format": _FORMAT, "khot": __version__, **numbers, "digest": digest(arrays)})
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{_a(kind)} cannot be saved to {folder}: {error}") from error


def weights_of(module: nn.Module, prefix: str) -> dict[str, Tensor]:
    """The state of a module on the CPU, with a prefix before every name."""
    return {prefix + name: value.detach().cpu() for name, value in module.state_dict().items()}


def load_weights(folder: Path, module: nn.Module, tensors: dict[str, Tensor], prefix: str) -> nn.Module:
    """Give a module the state that was written with a prefix; it is in `eval()` mode then."""
    weights = {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(
            f"{prefix.rstrip('/')} does not fit the weights in {folder} ({one_line(error)}): pass the same make"
        ) from error
    return module.eval()


def check_folder(folder: Path, kind: str, beside: Collection[str] = ()) -> None:
    """Refuse a folder to which no such model can be written, as it holds other things."""
    if folder.exists() and not folder.is_dir():
        raise ModelFileError(f"{folder} is a file: save {_a(kind)} to a folder")
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK) or (folder.is_symlink() and not folder.exists()):
        raise ModelFileError(f"{folder} cannot be made or written to: save {_a(kind)} to another folder")
    files = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    inside = {name for name in files if not name.startswith(".")}
    if not inside <= {f"{kind}.json", _TENSORS, *beside} or (inside and not _is_model(folder / f"{kind}.json")):
        raise ModelFileError(f"{folder} holds other things than {_a(kind)}: save it to a new or empty folder")


def _is_model(path: Path) -> bool:
    """Whether a file was written by khot."""
    try:
        return {"format", "khot", "digest"} <= json.loads(path.read_text(encoding="utf-8")).keys()
    except (OSError, ValueError, AttributeError):
        return False


def discard(folder: Path, beside: Collection[str]) -> None:
    """Remove what was written beside the model before."""
    for name in beside:
        (folder / name).unlink(missing_ok=True)


def read_numbers(folder: Path, kind: str) -> dict[str, Any]:
    """The numbers of a model."""
    path = folder / f"{kind}.json"
    if not path.is_file():
        raise ModelFileError(f"{folder} is not the folder of {_a(kind)}: pass the folder that it was saved to")
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
        if numbers["format"] != _FORMAT:
            raise ValueError(f"format {numbers['format']}, of another version of khot")
    except Exception as error:
        raise _damaged(folder, error) from error
    return numbers


def read_model(
    folder: Path,
    kind: str,
    model: Any,
    restore: Callable[[dict[str, Any], dict[str, Tensor]], None],
    build: Callable[[str], nn.Module],
    encoder: nn.Module | None,
) -> None:
    """Make an unfitted estimator the one that was written, or raise an error that says what is wrong with the folder.

    `restore` gets the numbers and tensors, then `build` the name of the encoder, if it is one of khot's; if it is not,
    `encoder` is one of the same make.
    """
    numbers, tensors = read_parts(folder, kind)
    with reading(folder):
        name = numbers["encoder"]
        parameters = _plain(numbers["parameters"])
        model.set_params(**{_NEW_NAMES.get(name, name): value for name, value in parameters.items()})
        model.history_ = numbers["history"]
        if numbers["feature_names"]:
            model.feature_names_in_ = np.array(numbers["feature_names"], dtype=object)
        restore(numbers, tensors)
    module = _encoder(folder, name, build, encoder)
    model.encoder_ = load_weights(folder, module, tensors, _ENCODER)
    model.encoder = name or encoder


def read_parts(folder: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The numbers and tensors of a model."""
    numbers = read_numbers(folder, kind)
    with reading(folder):
        if numbers["digest"] != digest(folder / _TENSORS):
            raise ValueError(f"{_TENSORS} is not the one that was saved with {kind}.json")
        return numbers, read_tensors(folder / _TENSORS)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Whatever goes wrong inside is told as damage of the folder."""
    try:
        yield
    except Exception as error:  # safetensors has errors of its own
        raise _damaged(folder, error) from error


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _damaged(folder: Path, error: Exception) -> ModelFileError:
    return ModelFileError(f"{folder} cannot be read ({type(error).__name__}: {error}): save it anew")


def _encoder(folder: Path, name: str | None, build: Callable[[str], nn.Module], given: nn.Module | None) -> nn.Module:
    if name is None and given is None:
        raise ModelFileError(f"{folder} was saved with an encoder of your own: pass such a module as encoder")
    if name is not None and given is not None:
        raise ModelFileError(f"{folder} was saved with the encoder {name!r}: do not pass another one")
    if name is None:
        return copy.deepcopy(_checks.instance("encoder", given, nn.Module))
    with reading(folder):
        return build(name)


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """The numbers and words among the parameters that are not about one machine or run."""
    kinds = (bool, int, float, str, np.bool_, np.integer, np.floating)
    values = {name: value for name, value in parameters.items() if name not in _ELSEWHERE and isinstance(value, kinds)}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
