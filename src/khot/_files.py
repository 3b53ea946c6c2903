"""Files that are written completely or not at all, and the formats that several packages share."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

_LINE, _RECORD = 120, 240  # longest value on one line, and longest entry of a list, in characters


@contextmanager
def new_file(place: Path) -> Iterator[Path]:
    """Temporary path to write to, which replaces `place` if all goes well and is removed if not.

    A place that cannot be replaced, such as a pipe, is written to directly.
    """
    if place.exists() and not place.is_file():
        yield place
        return
    place = place.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(place.parent, os.W_OK):
        yield place
        return
    part = place.with_name(f".{uuid4().hex}.{place.name}")
    try:
        yield part
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def write_array(place: Path, values: np.ndarray) -> None:
    """Write or replace an NPY file, whatever its name."""
    with new_file(place) as part, part.open("wb") as file:
        np.save(file, values)


def write_text(place: Path, text: str) -> None:
    """Write or replace a text file. Characters that UTF-8 cannot encode become question marks."""
    with new_file(place) as part:
        part.write_text(text, encoding="utf-8", errors="replace", newline="")


def write_json(place: Path, value: Any) -> None:
    """Write or replace a JSON file, on the disk for certain when this returns."""
    with new_file(place) as part:
        save_json(part, value)


def write_tensors(place: Path, tensors: dict[str, "Tensor"]) -> None:
    """Write or replace a safetensors file, on the disk for certain when this returns."""
    with new_file(place) as part:
        save_tensors(part, tensors)


def save_json(path: Path, value: Any) -> None:
    """Write a JSON file in place; NaN and infinity are refused, since JSON cannot represent them."""
    path.write_text(readable_json(value), encoding="utf-8")
    _flush(path)


def save_tensors(path: Path, tensors: dict[str, "Tensor"]) -> None:
    """Write a safetensors file in place."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode  # of any new file; safetensors makes files that no one else can read
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # such as a full disk
        raise OSError(f"{path.parent} cannot be written ({error}): make room, or choose another folder") from error
    path.chmod(mode)
    _flush(path)


def read_tensors(path: Path) -> dict[str, "Tensor"]:
    """Tensors of a safetensors file, on the CPU."""
    from safetensors.torch import load_file

    return load_file(path)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def readable_json(value: Any, allow_nan: bool = False) -> str:
    """JSON that reads on a screen: arrays of scalars and short records take one line each.

    >>> print(readable_json({"weights": [0.1, 0.9], "history": [{"epoch": 0, "loss": 1.5}, {"epoch": 1, "loss": 0.5}]}))
    {
     "weights": [0.1, 0.9],
     "history": [{"epoch": 0, "loss": 1.5}, {"epoch": 1, "loss": 0.5}]
    }
    """
    plain = json.loads(json.dumps(value, allow_nan=allow_nan))  # names are texts, and tuples lists
    return _lines(plain, "", "\n", 0) + "\n"


def _lines(value: Any, name: str, indent: str, longest: int) -> str:
    """JSON of a value behind its name, on one line if that has at most `longest` characters."""
    line = name + json.dumps(value)
    nested = isinstance(value, dict | list) and value
    if not nested or len(indent) + len(line) <= longest:
        return line
    inner = indent + " "
    if isinstance(value, dict):
        parts = [_lines(part, f"{json.dumps(key)}: ", inner, _LINE) for key, part in value.items()]
        return name + "{" + inner + f",{inner}".join(parts) + indent + "}"
    if not any(isinstance(part, dict | list) for part in value):
        return line
    return name + "[" + inner + f",{inner}".join(_lines(part, "", inner, _RECORD) for part in value) + indent + "]"


def _flush(path: Path) -> None:
    """Wait until a file is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
