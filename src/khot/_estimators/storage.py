"""A fitted model on disk: a folder with tensors (safetensors) and numbers (JSON). Loading it executes nothing."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from khot import __version__
from khot._files import digest, new_file, read_tensors, save_json, save_tensors
from khot.errors import ModelFileError, one_line

LAYOUT, BLACK_BOX = "table.json", "black_box.json"  # what the command line remembers about a table and a black box
_TENSORS = "tensors.safetensors"
_FORMAT = 1


@dataclass(frozen=True)
class Kind:
    """Kind of model: its name, which its JSON file shares, and further files that the command line writes."""

    name: str
    further_files: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    def numbers_in(self, folder: Path) -> Path:
        """Path of the JSON file."""
        return folder / f"{self.name}.json"


CLASSIFIER = Kind("classifier", (LAYOUT,))
EMBEDDING = Kind("embedding", (LAYOUT, "points.npy", "map.png", "map.html"))
EXPLAINER = Kind("explainer", (BLACK_BOX,))


def check_folder(folder: Path, kind: Kind) -> None:
    """Refuse a folder to which a model of this kind cannot be written, or which holds other things."""
    if folder.exists() and not folder.is_dir():
        raise ModelFileError(f"{folder} is a file: save {kind} to a folder")
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK) or (folder.is_symlink() and not folder.exists()):
        raise ModelFileError(f"{folder} cannot be made or written to: save {kind} to another folder")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    names = {name for name in names if not name.startswith(".")}
    known = {kind.numbers_in(folder).name, _TENSORS, *kind.further_files}
    if names and not (names <= known and _is_model(kind.numbers_in(folder))):
        raise ModelFileError(f"{folder} holds other things than {kind}: save it to a new or empty folder")


def _is_model(path: Path) -> bool:
    """Whether khot wrote a JSON file."""
    try:
        return {"format", "khot", "digest"} <= json.loads(path.read_text(encoding="utf-8")).keys()
    except (OSError, ValueError, AttributeError):
        return False


def write_parts(folder: Path, kind: Kind, numbers: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write numbers and tensors, with a digest that shows whether both were saved together."""
    check_folder(folder, kind)
    with new_file(kind.numbers_in(folder)) as json_file, new_file(folder / _TENSORS) as tensor_file:
        save_tensors(tensor_file, {name: tensor.clone() for name, tensor in tensors.items()})
        try:
            about = {"format": _FORMAT, "khot": __version__, **numbers, "digest": digest(tensor_file)}
            save_json(json_file, about)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{kind} cannot be saved to {folder}: {error}") from error


def discard(folder: Path, kind: Kind) -> None:
    """Remove the further files of the model that was in the folder before."""
    for name in kind.further_files:
        (folder / name).unlink(missing_ok=True)


def read_numbers(folder: Path, kind: Kind) -> dict[str, Any]:
    """Numbers of a model."""
    path = kind.numbers_in(folder)
    if not path.is_file():
        raise ModelFileError(f"{folder} is not the folder of {kind}: pass the folder that it was saved to")
    with reading(folder):
        numbers = json.loads(path.read_text(encoding="utf-8"))
        if numbers["format"] != _FORMAT:
            raise ValueError(f"format {numbers['format']}, of another version of khot")
        return numbers


def read_parts(folder: Path, kind: Kind) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Numbers and tensors of a model."""
    numbers = read_numbers(folder, kind)
    with reading(folder):
        if numbers["digest"] != digest(folder / _TENSORS):
            raise ValueError(f"{_TENSORS} is not the one that was saved with {kind.numbers_in(folder).name}")
        return numbers, read_tensors(folder / _TENSORS)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Report any error inside as damage of the folder."""
    try:
        yield
    except Exception as error:  # safetensors has errors of its own
        raise ModelFileError(f"{folder} cannot be read ({type(error).__name__}: {error}): save it again") from error


def weights_of(module: nn.Module, prefix: str) -> dict[str, Tensor]:
    """State of a module on the CPU, with a prefix before every name."""
    return {prefix + name: value.detach().cpu() for name, value in module.state_dict().items()}


def load_weights(folder: Path, module: nn.Module, tensors: dict[str, Tensor], prefix: str) -> nn.Module:
    """Load the state that was written with a prefix into a module, and put that into `eval()` mode."""
    weights = {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(
            f"{prefix.rstrip('/')} does not fit the weights in {folder} ({one_line(error)}): "
            "pass a module of the same architecture"
        ) from error
    return module.eval()
