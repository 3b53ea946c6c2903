"""Where a run lives, and how its folder tells whether it is the same run."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import LambdaType
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import __version__
from khot.errors import RunFolderError
from khot.training._batches import parts, take_array
from khot.training._checkpoints import write_json
from khot.training.settings import Settings

_IDENTITY = "settings.json"
_ROWS_AT_ONCE = 256
_MOST_READ = 10**9  # numbers
_PLAIN = (int, float, str)


def identity(
    module: nn.Module, loss: Callable, data: Any, settings: Settings, validate: Callable | None, precision: str
) -> dict[str, Any]:
    """What two runs must share to be the same; the device and the number of processes may change."""
    return {
        **{field.name: _describe(getattr(settings, field.name)) for field in fields(settings)},
        "loss": _describe(loss),
        "validate": _describe(validate),
        "precision": precision,
        "module": type(module).__qualname__,
        "weights": {name: f"{value.dtype} {tuple(value.shape)}" for name, value in module.state_dict().items()},
        "data": {name: f"{part.dtype} {tuple(part.shape)} {_digest_of(part)}" for name, part in parts(data).items()},
    }


def _describe(value: Any) -> Any:
    """A number, name or None itself, anything else as it prints, without its address in memory."""
    if isinstance(value, int | float | str | None):
        return value
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return f"{text} {_code(value)}" if isinstance(value, LambdaType) and value.__name__ == "<lambda>" else text


def _code(function: LambdaType) -> str:
    """A digest of what a function without a name computes, with the numbers and words around it."""
    around = [cell.cell_contents for cell in function.__closure__ or () if isinstance(cell.cell_contents, _PLAIN)]
    parts = (function.__code__.co_code, function.__code__.co_consts, function.__defaults__, around)
    return hashlib.blake2b(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(parts)).encode(), digest_size=8).hexdigest()


def _digest_of(part: Any) -> str:
    """A digest of all rows, or of some where reading all would take long."""
    count, digest = part.shape[0], hashlib.blake2b(digest_size=8)
    rows = np.arange(count)
    if count * math.prod(part.shape[1:]) > _MOST_READ:
        rows = np.unique(np.linspace(0, count - 1, _ROWS_AT_ONCE).astype(np.int64))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        digest.update(_bytes(part, rows[start : start + _ROWS_AT_ONCE]))
    return digest.hexdigest()


def _bytes(part: Any, rows: np.ndarray) -> bytes:
    if isinstance(part, torch.Tensor):
        return part[torch.from_numpy(rows)].cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return np.ascontiguousarray(take_array(part, rows)).tobytes()


def open_folder(folder: Path | str | None, about: dict[str, Any], resume: bool) -> Path:
    """The folder of the run `about`, made if need be; one of another run is refused."""
    path = _by_default(about, resume) if folder is None else Path(folder).expanduser().absolute()
    if (path / _IDENTITY).exists():
        _must_be_the_same(path, about, resume)
    elif path.exists() and not (path.is_dir() and all(inside.suffix == ".draft" for inside in path.iterdir())):
        raise RunFolderError(f"{path} is not the folder of a run: pass a new or empty folder")
    else:
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / _IDENTITY, {"khot": __version__, **about})
    return path


def _by_default(about: dict[str, Any], resume: bool) -> Path:
    """A new folder in the user's cache, named by the settings and the time; to resume, the last with that name."""
    runs = cached_runs()
    digest = hashlib.blake2b(json.dumps(about).encode(), digest_size=6).hexdigest()
    before = sorted(runs.glob(f"{digest}-*"))
    return before[-1] if resume and before else runs / f"{digest}-{datetime.now():%Y%m%d-%H%M%S-%f}"


def cached_runs() -> Path:
    """Where runs live whose folder nobody names: in the user's cache."""
    import pooch

    return Path(pooch.os_cache("khot")).expanduser() / "runs"


def in_use(folder: Path | str) -> RunFolderError:
    """The error for a folder that holds a run that shall not be resumed."""
    return RunFolderError(f"{folder} holds a run already: resume it (resume=True, --resume), or pass another folder")


def _must_be_the_same(path: Path, about: dict[str, Any], resume: bool) -> None:
    if not resume:
        raise in_use(path)
    try:
        there = json.loads((path / _IDENTITY).read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunFolderError(f"{path / _IDENTITY} is damaged ({error}): start again in another folder") from error
    differences = [
        f"{name} is {about.get(name)!r}, there it was {there.get(name)!r}"
        for name in sorted({*about, *there} - {"khot"})
        if about.get(name) != there.get(name)
    ]
    if differences:
        raise RunFolderError(
            f"{path} belongs to a run with other settings: {'; '.join(differences)}: "
            "pass the same settings to go on with it, or another folder"
        )
