"""What the scikit-learn faces of the applications share."""

import numbers
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from khot import _checks
from khot.errors import DivergedError, InvalidTypeError, InvalidValueError
from khot.training.folders import how_to_resume

DEVICES = ("cpu", "cuda", "mps", "auto")


def draw_seed(random_state: Any) -> int:
    """The seed of a training.

    >>> draw_seed(0) == draw_seed(0)
    True
    """
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidValueError(
            f"random_state must be an int from 0 to 2^32 - 1, a RandomState or None, but got {random_state!r}: pass one"
        ) from error


def find_device(name: str) -> torch.device:
    """The device of a name; that of "auto" is the CPU where there is no other."""
    _checks.choice("device", name, DEVICES)
    there = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    if name not in ("cpu", "auto", there.type):
        raise InvalidValueError(f"device {name!r} is not available, but {there.type!r} is: pass that, or 'auto'")
    return torch.device("cpu") if name == "cpu" else there


def encoder_name(encoder: Any, names: Collection[str]) -> str:
    """The name of an encoder that is not a module of yours."""
    if not isinstance(encoder, str):
        raise InvalidTypeError(
            f"encoder must be one of {', '.join(names)} or a torch.nn.Module, "
            f"but got {encoder!r} of type {type(encoder).__name__}: choose one of them"
        )
    return _checks.choice("encoder", encoder, tuple(names))


def check_resume(estimator: Any) -> None:
    """Refuse to resume a training whose folder is not named, or that drew its own seed."""
    if estimator.resume and estimator.folder is None:
        raise InvalidValueError("resume needs the folder of the training, but got none: pass it")
    if estimator.resume and not isinstance(estimator.random_state, numbers.Integral):
        raise InvalidValueError(
            f"resume needs the seed of the training, but random_state is {estimator.random_state!r}: pass its int"
        )


def equal_shares(size: int, processes: int) -> int:
    """The largest multiple of the number of processes up to `size`, as all of them get equal shares."""
    return max(size // processes, 1) * processes


@contextmanager
def fitting(estimator: Any) -> Iterator[Path]:
    """The folder of a training, which goes afterwards if none was named; what fails leaves the estimator as it was."""
    if estimator.folder is not None and not isinstance(estimator.folder, str | Path):
        raise InvalidTypeError(f"folder must be a path, but got {estimator.folder!r}: name a folder for the training")
    before = dict(vars(estimator))
    try:
        if estimator.folder is not None:
            yield Path(estimator.folder).expanduser()
        else:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder)
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


def as_array(value: Any) -> Any:
    """Tensors as arrays; the rest is for scikit-learn to judge, but for what it would take for numbers."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise InvalidTypeError(f"a tensor of layout {value.layout} cannot be used: pass x.to_dense()")
        return (value.float() if value.dtype == torch.bfloat16 else value).detach().cpu().numpy()
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidValueError("an array with masked values cannot be used: fill them in, or leave out such rows")
    if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        raise InvalidTypeError(f"an array of {value.dtype} cannot be used: convert it to numbers or texts")
    return value


def in_one_line(error: Exception) -> str:
    """What scikit-learn found; of missing values it would go on for a page."""
    message = str(error)
    if "contains NaN" in message or "contains infinity" in message:
        return f"{message.splitlines()[0].rstrip('.')}: fill in or leave out such rows"
    return message.replace("\n", " ")
