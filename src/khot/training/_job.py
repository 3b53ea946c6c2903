"""Arguments of the processes of a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from khot.training.settings import Settings
from khot.training.steps import Step

Loss = Callable[[nn.Module, Any, Step], Tensor]
Validate = Callable[[nn.Module], Mapping[str, float]]


@dataclass(frozen=True)
class Job:
    """What to train, where to write, and the checkpoint to continue from; the same for every process."""

    loss: Loss
    data: Any
    settings: Settings
    validate: Validate | None
    folder: Path
    checkpoint: Path | None
    checkpoint_seconds: float
    verbose: bool
