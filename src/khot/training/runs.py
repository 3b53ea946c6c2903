"""Entry point: check the input, find the folder, start the processes, return the result."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from khot import _checks, errors
from khot._files import read_tensors
from khot._renamed import renamed
from khot.errors import InvalidValueError
from khot.training import _checkpoints
from khot.training._batches import count_rows
from khot.training._epochs import HISTORY, WEIGHTS
from khot.training._interrupt import ControlC
from khot.training._job import Job, Loss, Validate
from khot.training._loop import ERROR, train
from khot.training._snapshot import Record, check_state
from khot.training.folders import identity, open_folder
from khot.training.settings import Settings

DEVICES = ("cpu", "cuda", "mps", "auto")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    folder : Path
        Folder with `history.json`, `weights.safetensors` (those of the best epoch), and the last checkpoints.
    history : list of dict
        Record of every epoch: its number `epoch` (from 0), mean training `loss`, `seconds`, `processor_seconds` (of all
        threads of the first process), and the numbers of `validation` if there is one, None where they are not finite.
    best : dict
        Record of the best epoch.
    """

    folder: Path
    history: list[Record]
    best: Record


@renamed(accelerator="device")
def fit(
    module: nn.Module,
    loss: Loss,
    data: Any,
    settings: Settings | None = None,
    *,
    validate: Validate | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
    device: str = "cpu",
    devices: int = 1,
    precision: str = "32-true",
    checkpoint_seconds: float = 300.0,
    verbose: bool = False,
) -> Run:
    """Train a module. The training can be killed and resumed at any step.

    Afterwards the module has the weights of the best epoch and is in `eval()` mode. With one process on a CPU, a run
    that was stopped and resumed ends with the same weights as one that was not, bit for bit, because the batches and
    all noise of torch follow from the seed and the number of the step. This does not hold for noise from elsewhere,
    such as NumPy.

    Parameters
    ----------
    module : nn.Module
        Module to train.
    loss : callable
        ``loss(module, batch, step)`` returns the mean over the rows of the batch as a tensor of shape (), where `step`
        is a `Step`. It has to call the module itself rather than its methods, since only then precision and processes
        are handled.
    data : Tensor, ndarray, sparse CSR array, or a tuple, list or dict of them
        Rows (n, ...). A memory-mapped array stays on disk. `batch` has the same structure, with some of the rows as
        dense tensors on the device.
    settings : Settings, optional
        How to train.
    validate : callable, optional
        ``validate(module)`` returns a dict of numbers. It is called after every epoch, in the first process only,
        without gradients, in `eval()` mode and in full precision. Its input has to be on the device of the module.
    folder : path, optional
        Folder of the run; by default a new folder `runs/...` in khot's folder of the user's cache.
    resume : bool
        Continue the run in `folder` (by default the last run of the same settings) from its newest checkpoint, or from
        the start if it has none.
    about : mapping, optional
        Further values that identify this run, such as parameters that produced the data. A run with other values is
        not resumed.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device.
    devices : int
        Number of processes, each with a device and an equal share of every batch. All arguments must be picklable, and
        scripts need the guard ``if __name__ == "__main__"``. Each process computes its own batch normalisation.
    precision : {"32-true", "bf16-mixed", "16-mixed"}
        Precision of the module's forward pass in training.
    checkpoint_seconds : float
        Time between checkpoints. Another one is written at the end of every epoch if that is cheap.
    verbose : bool
        Print the numbers of every epoch, or of about twenty if there are many.

    Returns
    -------
    Run
        The history and the folder.

    Raises
    ------
    DivergedError
        If the loss or the weights are no longer finite.
    RunFolderError
        If the folder holds another run, or only damaged checkpoints.
    KeyboardInterrupt
        On Ctrl-C, after the end of the step and a checkpoint. A second Ctrl-C stops at once.

    Examples
    --------
    >>> import tempfile, torch
    >>> from khot.training import Cosine, Settings, fit
    >>> x = torch.linspace(-1, 1, 64)[:, None]
    >>> def squared_error(module, batch, step):
    ...     x, y = batch
    ...     return (module(x) - y).square().mean()
    >>> settings = Settings(epochs=20, batch_size=16, learning_rate=Cosine(0.3, steps=80))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = fit(torch.nn.Linear(1, 1), squared_error, (x, 3 * x - 1), settings, folder=folder)
    >>> len(run.history), run.best["loss"] < 0.01
    (20, True)
    """
    from lightning_fabric import Fabric

    settings = Settings() if settings is None else settings
    _check(module, loss, data, settings, validate, device, devices, precision)
    seconds = _checks.positive("checkpoint_seconds", checkpoint_seconds)
    fabric = Fabric(
        accelerator=device,
        devices=devices,
        precision=precision,  # pyright: ignore[reportArgumentType]
        strategy="auto" if devices == 1 else "ddp_spawn",
    )
    place = open_folder(folder, identity(module, loss, data, settings, validate, precision, about or {}), resume)
    job = Job(loss, data, settings, validate, place, _checkpoints.newest(place / "checkpoints"), seconds, verbose)
    (place / ERROR).unlink(missing_ok=True)
    try:
        with ControlC() if devices > 1 else nullcontext():  # with several processes, they react themselves
            stop = fabric.launch(partial(train, job), module)  # pyright: ignore[reportArgumentType]
    except Exception as error:
        raise _as_it_was(error, place) from error
    if stop is not None:
        raise stop
    return _result(place, module)


def _check(
    module: Any, loss: Any, data: Any, settings: Any, validate: Any, device: Any, devices: Any, precision: Any
) -> None:
    _checks.instance("module", module, nn.Module)
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise InvalidValueError("module has no parameter that requires a gradient: there is nothing to train")
    check_state(module)
    _checks.function("loss", loss, "of (module, batch, step)")
    _checks.instance("settings", settings, Settings)
    rows = count_rows(data)
    if settings.batch_size > rows:
        raise InvalidValueError(
            f"batch_size must be at most the number of rows, {rows}, but got {settings.batch_size}: pass a smaller one"
        )
    if validate is not None:
        _checks.function("validate", validate, "of the module")
    if (validate is None) != (settings.monitor is None):
        raise InvalidValueError(
            "validate and settings.monitor belong together, "
            f"but got validate={validate!r} and monitor={settings.monitor!r}: pass both, or neither"
        )
    _checks.choice("device", device, DEVICES)
    _checks.choice("precision", precision, PRECISIONS)
    if settings.batch_size % _checks.whole_number("devices", devices, least=1):
        raise InvalidValueError(
            f"batch_size must be a multiple of devices, {devices}, but got {settings.batch_size}: "
            "pass a multiple, of which every process gets an equal share"
        )


def _as_it_was(error: Exception, folder: Path) -> Exception:
    """Error of khot that ended one of the processes, or the given error if there is none."""
    if isinstance(error, errors.KhotError) or not (folder / ERROR).is_file():
        return error
    written = json.loads((folder / ERROR).read_text(encoding="utf-8"))
    return getattr(errors, written["kind"])(written["message"])


def _result(folder: Path, module: nn.Module) -> Run:
    """Read the result from the folder, since another process may have trained."""
    module.load_state_dict(read_tensors(folder / WEIGHTS))
    module.eval()
    written = json.loads((folder / HISTORY).read_text(encoding="utf-8"))
    history = written["epochs"]
    return Run(folder, history, history[-1 if written["best_epoch"] is None else written["best_epoch"]])
