"""Checkpoints on disk: folders with tensors (safetensors) and numbers (JSON), written completely or not at all."""

import json
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from khot._files import digest, read_tensors, write_json, write_tensors
from khot.errors import RunFolderError
from khot.training._job import Job
from khot.training._snapshot import finite

_TENSORS, _NUMBERS = "tensors.safetensors", "numbers.json"
_SHARE_OF_TIME = 0.05  # for checkpoints at the end of epochs


def name_of(step: int) -> str:
    """Name of the checkpoint of `step`. Names sort like steps."""
    return f"step-{step:09d}"


def write(folder: Path, step: int, tensors: dict[str, Tensor], numbers: dict[str, Any], keep: Path | None) -> Path:
    """Write the checkpoint of `step`, remove all others except `keep`, and return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    draft, path = folder / "draft", folder / name_of(step)
    shutil.rmtree(draft, ignore_errors=True)  # from a process that was killed while it wrote
    draft.mkdir()
    write_tensors(draft / _TENSORS, tensors)
    write_json(draft / _NUMBERS, {**numbers, "digest": digest(draft / _TENSORS)})
    shutil.rmtree(path, ignore_errors=True)  # a damaged checkpoint of the same step
    draft.replace(path)
    for other in folder.glob("step-*"):
        if other not in (path, keep):
            shutil.rmtree(other)
    return path


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and numbers of a checkpoint. Raises ValueError or OSError if it is damaged."""
    numbers = json.loads((path / _NUMBERS).read_text(encoding="utf-8"))
    if numbers["digest"] != digest(path / _TENSORS):
        raise ValueError(f"{_TENSORS} is not the file that was written")
    return read_tensors(path / _TENSORS), numbers


def newest(folder: Path) -> Path | None:
    """Newest checkpoint that is not damaged, or None if there was never one."""
    damage = []
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            read(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            damage.append(f"{path.name} ({error})")
        else:
            if damage:
                warnings.warn(f"continuing from {path}, because later checkpoints are damaged: {damage}", stacklevel=3)
            return path
    if damage:
        raise RunFolderError(
            f"every checkpoint in {folder} is damaged: {', '.join(damage)}: delete that folder to train from the start"
        )
    return None


class Saver:
    """Writer of checkpoints of `module`, with the tensors and numbers that `pack` returns, if it is `active`.

    `last` is the path of the last good checkpoint.
    """

    def __init__(
        self, job: Job, module: nn.Module, pack: Callable[[], tuple[dict[str, Tensor], dict[str, Any]]], active: bool
    ) -> None:
        self.job, self.last = job, job.checkpoint
        self._module, self._pack, self._active = module, pack, active
        self._written_at, self._cost = time.monotonic(), 0.0

    def save_if_due(self, step: int, end_of_epoch: bool) -> None:
        """Save if the last checkpoint is old enough, and at the end of an epoch if that is cheap."""
        age = time.monotonic() - self._written_at
        if age >= self.job.checkpoint_seconds or (end_of_epoch and self._cost <= _SHARE_OF_TIME * age):
            self.save(step)

    def save(self, step: int) -> None:
        """Write the checkpoint of `step`, unless it exists or the weights are not finite."""
        there = self.last is not None and self.last.name == name_of(step)
        if there or not self._active or not finite(self._module):
            return
        started = time.monotonic()
        self.last = write(self.job.folder / "checkpoints", step, *self._pack(), keep=self.last)
        self._written_at = time.monotonic()
        self._cost = self._written_at - started
