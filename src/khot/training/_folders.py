"""Where a run lives, and how its folder tells whether it is the same run."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
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
_ROWS_LOOKED_AT = 256


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
        "data": {name: f"{part.dtype} {tuple(part.shape)} {_sample(part)}" for name, part in parts(data).items()},
    }


def _describe(value: Any) -> Any:
    """A number, name or None itself, anything else as it prints, without its address in memory."""
    return value if isinstance(value, int | float | str | None) else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _sample(part: Any) -> str:
    """A digest of some rows, as reading all of them may take long."""
    rows = np.unique(np.linspace(0, part.shape[0] - 1, _ROWS_LOOKED_AT).astype(np.int64))
    some = part[torch.from_numpy(rows)].cpu().contiguous() if isinstance(part, torch.Tensor) else take_array(part, rows)
    raw = some.view(torch.uint8).numpy() if isinstance(some, torch.Tensor) else np.ascontiguousarray(some)
    return hashlib.blake2b(raw.tobytes(), digest_size=8).hexdigest()


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
    import pooch

    runs = Path(pooch.os_cache("khot")).expanduser() / "runs"
    digest = hashlib.blake2b(json.dumps(about).encode(), digest_size=6).hexdigest()
    before = sorted(runs.glob(f"{digest}-*"))
    return before[-1] if resume and before else runs / f"{digest}-{datetime.now():%Y%m%d-%H%M%S-%f}"


def _must_be_the_same(path: Path, about: dict[str, Any], resume: bool) -> None:
    if not resume:
        raise RunFolderError(f"{path} holds a run already: pass resume=True to go on with it, or another folder")
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
