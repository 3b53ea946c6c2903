"""Decision when to write a checkpoint."""

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from khot.training import _checkpoints
from khot.training._job import Job
from khot.training._snapshot import finite

_SHARE_OF_TIME = 0.05  # for checkpoints at the end of epochs


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
        there = self.last is not None and self.last.name == _checkpoints.name_of(step)
        if there or not self._active or not finite(self._module):
            return
        started = time.monotonic()
        self.last = _checkpoints.write(self.job.folder / "checkpoints", step, *self._pack(), keep=self.last)
        self._written_at = time.monotonic()
        self._cost = self._written_at - started
