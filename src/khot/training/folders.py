"""Folder of a run, and the description by which a run is recognised."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import LambdaType
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import __version__
from khot._files import write_json
from khot.errors import RunFolderError
from khot.training._batches import parts, take_array
from khot.training.settings import Settings

_IDENTITY = "settings.json"
_ROWS_AT_ONCE = 256
_MAX_READ = 10**9  # numbers, up to which all rows are digested
_PLAIN = (int, float, str)
_WRITTEN_AS = {"random_state": "seed"}  # as in earlier versions, whose runs can be resumed


def identity(
    module: nn.Module,
    loss: Callable,
    data: Any,
    settings: Settings,
    validate: Callable | None,
    precision: str,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Description that two runs must share to be the same. The device and the number of processes may change."""
    return {
        **{name: _describe(value) for name, value in about.items()},
        **{
            _WRITTEN_AS.get(field.name, field.name): _describe(getattr(settings, field.name))
            for field in fields(settings)
        },
        "loss": _describe(loss),
        "validate": _describe(validate),
        "precision": precision,
        "module": f"{type(module).__qualname__} {_digest_of_text(_printed(module))}",
        "weights": {name: f"{value.dtype} {tuple(value.shape)}" for name, value in module.state_dict().items()},
        "data": {name: f"{part.dtype} {tuple(part.shape)} {_digest_of(part)}" for name, part in parts(data).items()},
    }


def _describe(value: Any) -> Any:
    """JSON value that describes an object: itself, its repr, or its attributes if its repr is only an address."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, int | float | str | None):
        return value
    if type(value).__repr__ is object.__repr__ and hasattr(value, "__dict__"):
        return f"{type(value).__qualname__} { ({name: _describe(part) for name, part in vars(value).items()}) }"
    text = _printed(value)
    return f"{text} {_code(value)}" if isinstance(value, LambdaType) and value.__name__ == "<lambda>" else text


def _printed(value: Any) -> str:
    """Representation of a value without addresses in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _code(function: LambdaType) -> str:
    """Digest of the code of a lambda, with the numbers and words that it closes over."""
    around = [cell.cell_contents for cell in function.__closure__ or () if isinstance(cell.cell_contents, _PLAIN)]
    parts = (function.__code__.co_code, function.__code__.co_consts, function.__defaults__, around)
    return _digest_of_text(_printed(parts))


def _digest_of_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def digest_of(*arrays: np.ndarray) -> str:
    """Short digest of arrays."""
    return _digest_of_text(" ".join(f"{array.dtype} {array.shape} {_digest_of(array)}" for array in arrays))


def _digest_of(part: Any) -> str:
    """Digest of all rows, or of a sample where reading all would take long."""
    count, digest = part.shape[0], hashlib.blake2b(digest_size=8)
    rows = np.arange(count)
    if count * math.prod(part.shape[1:]) > _MAX_READ:
        rows = np.unique(np.linspace(0, count - 1, _ROWS_AT_ONCE).astype(np.int64))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        digest.update(_bytes(part, rows[start : start + _ROWS_AT_ONCE]))
    return digest.hexdigest()


def _bytes(part: Any, rows: np.ndarray) -> bytes:
    if isinstance(part, torch.Tensor):
        return part[torch.from_numpy(rows)].cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return np.ascontiguousarray(take_array(part, rows)).tobytes()


def open_folder(folder: Path | str | None, about: dict[str, Any], resume: bool) -> Path:
    """Folder of the run that `about` describes, created if necessary. A folder of another run is refused."""
    path = _by_default(about, resume) if folder is None else Path(folder).expanduser().absolute()
    if (path / _IDENTITY).exists():
        if not resume:
            raise in_use(path)
        there = _identity_in(path)
        _must_agree(path, about, there, {*about, *there} - {"khot"})
    elif path.exists() and not (path.is_dir() and all(inside.name.startswith(".") for inside in path.iterdir())):
        raise RunFolderError(f"{path} is not the folder of a run: pass a new or empty folder")
    else:
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / _IDENTITY, {"khot": __version__, **about})
    return path


def _by_default(about: dict[str, Any], resume: bool) -> Path:
    """New folder in the user's cache, named by settings and time; or the last one of these settings, to resume."""
    runs = cached_runs()
    digest = hashlib.blake2b(json.dumps(about).encode(), digest_size=6).hexdigest()
    before = sorted(runs.glob(f"{digest}-*"))
    return before[-1] if resume and before else runs / f"{digest}-{datetime.now():%Y%m%d-%H%M%S-%f}"


def cached_runs() -> Path:
    """Folder in the user's cache for runs without a folder of their own."""
    import pooch

    return Path(pooch.os_cache("khot")).expanduser() / "runs"


def in_use(folder: Path | str) -> RunFolderError:
    """Error for a folder with a run that is not to be resumed."""
    return RunFolderError(f"{folder} holds a run already: resume it (resume=True, --resume), or pass another folder")


def how_to_resume(folder: Path | str) -> str:
    """Hint after a training was stopped."""
    return f"to continue, train again with the folder {str(folder)!r} and resume (resume=True, --resume)"


def _difference(name: str, here: Any, there: Any) -> str:
    """Difference between two values, or the first two entries in which two tables differ."""
    if not (isinstance(here, dict) and isinstance(there, dict)):
        return f"{name} is {here!r}, there it was {there!r}"
    names = [entry for entry in {**there, **here} if here.get(entry) != there.get(entry)]
    shown = [f"{name} {entry} is {here.get(entry)!r}, there it was {there.get(entry)!r}" for entry in names[:2]]
    return "; ".join(shown) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def check_about(path: Path, about: Mapping[str, Any]) -> None:
    """Refuse the folder of a run with another `about`. A folder without a run is fine."""
    if (path / _IDENTITY).exists():
        here = {name: _describe(value) for name, value in about.items()}
        _must_agree(path, here, _identity_in(path), here)


def seed_of(*runs: Path) -> int | None:
    """Seed of the first folder that holds a run."""
    for path in runs:
        if (path / _IDENTITY).exists():
            return _identity_in(path).get(_WRITTEN_AS["random_state"])
    return None


def _identity_in(path: Path) -> dict[str, Any]:
    try:
        there = json.loads((path / _IDENTITY).read_text(encoding="utf-8"))
        if not isinstance(there, dict):
            raise ValueError("it holds no settings")
    except ValueError as error:
        raise RunFolderError(f"{path / _IDENTITY} is damaged ({error}): start again in another folder") from error
    return there


def _must_agree(path: Path, here: dict[str, Any], there: dict[str, Any], names: Iterable[str]) -> None:
    differences = [
        _difference(name, here.get(name), there.get(name))
        for name in sorted(names)
        if here.get(name) != there.get(name)
    ]
    if differences:
        raise RunFolderError(
            f"{path} belongs to a run with other settings: {'; '.join(differences)}: "
            "pass the same settings to continue it, or another folder"
        )
