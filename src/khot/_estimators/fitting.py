"""Steps that all estimators take in `fit`."""

import copy
import numbers
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import nn

from khot import _checks
from khot.errors import DivergedError, InvalidTypeError, InvalidValueError
from khot.training.folders import how_to_resume, seed_of
from khot.training.runs import DEVICES


def draw_seed(random_state: Any) -> int:
    """Seed of a training.

    >>> draw_seed(0) == draw_seed(0)
    True
    """
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidValueError(
            f"random_state must be an int from 0 to 2^32 - 1, a RandomState or None, but got {random_state!r}: pass one"
        ) from error


def training_seed(estimator: Any, *runs: Path) -> int:
    """Seed of a training: with random_state None, that of the run to resume, in one of the folders, or a random one."""
    before = seed_of(*runs) if estimator.resume and estimator.random_state is None else None
    return draw_seed(estimator.random_state) if before is None else before


def new_network(seed: int, build: Callable[[], nn.Module]) -> nn.Module:
    """Copy of a network that is built with a seed, without a change to torch's own generator."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return copy.deepcopy(build())


def find_device(name: str) -> torch.device:
    """Device by name; "auto" is the accelerator of this machine, or the CPU if there is none."""
    _checks.choice("device", name, DEVICES)
    available = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    if name not in ("cpu", "auto", available.type):
        raise InvalidValueError(f"device {name!r} is not available, but {available.type!r} is: pass that, or 'auto'")
    return torch.device("cpu") if name == "cpu" else available


def encoder_name(encoder: Any, names: Collection[str]) -> str:
    """Name of one of khot's encoders."""
    if not isinstance(encoder, str):
        raise InvalidTypeError(
            f"encoder must be one of {', '.join(names)} or a torch.nn.Module, "
            f"but got {encoder!r} of type {type(encoder).__name__}: choose one of them"
        )
    return _checks.choice("encoder", encoder, tuple(names))


def check_resume(estimator: Any) -> None:
    """Refuse to resume a training without a folder, or with a generator, which has drawn its seed already."""
    if estimator.resume and estimator.folder is None:
        raise InvalidValueError("resume needs the folder of the training, but got none: pass the folder")
    if estimator.resume and not isinstance(estimator.random_state, numbers.Integral | None):
        raise InvalidValueError(
            f"resume needs the seed of the training, but random_state is {estimator.random_state!r}: pass the int, or "
            "None for the seed of the run in the folder"
        )


def equal_shares(size: int, processes: int) -> int:
    """Largest multiple of the number of processes up to `size`, since all of them get equal shares."""
    return max(size // processes, 1) * processes


@contextmanager
def fitting(estimator: Any) -> Iterator[Path]:
    """Folder of a training, which is temporary unless the estimator has one. A failure restores the estimator."""
    if estimator.folder is not None and not isinstance(estimator.folder, str | Path):
        raise InvalidTypeError(f"folder must be a path, but got {estimator.folder!r}: name a folder for the training")
    before = dict(vars(estimator))
    try:
        with tempfile.TemporaryDirectory() if estimator.folder is None else nullcontext(estimator.folder) as folder:
            yield Path(folder).expanduser()
    except BaseException as error:
        vars(estimator).clear()
        vars(estimator).update(before)
        if isinstance(error, KeyboardInterrupt):
            nothing_kept = "nothing was kept: pass a folder to be able to resume"
            hint = nothing_kept if estimator.folder is None else how_to_resume(estimator.folder)
            raise KeyboardInterrupt(f"stopped by Ctrl-C: {hint}") from None
        if isinstance(error, DivergedError) and estimator.folder is None:
            raise DivergedError(error.what, hint=error.hint) from None  # the checkpoint is gone
        raise
