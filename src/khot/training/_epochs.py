"""End of an epoch (validation, record, comparison with the best epoch), and end of a run."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from khot._files import write_json
from khot.errors import InvalidTypeError, InvalidValueError
from khot.training._job import Job, Validate
from khot.training._snapshot import Progress, Record
from khot.training.steps import key

_PRINTED = 20  # about as many epochs of a run
HISTORY, WEIGHTS = "history.json", "weights.safetensors"


def close_epoch(job: Job, fabric: Any, module: nn.Module, progress: Progress, steps: int) -> bool:
    """Validate, and add the record of an epoch of `steps` steps to the history. Returns whether it is the best."""
    epoch = len(progress.history)
    record: Record = {"epoch": epoch, "loss": progress.loss / steps}
    if job.validate:
        with progress.clock():
            torch.manual_seed(key(job.settings.random_state, "validate", epoch))
            numbers = _validate(job.validate, module) if fabric.is_global_zero else None
            record["validation"] = fabric.broadcast(numbers)
    record |= {"seconds": progress.seconds, "processor_seconds": progress.processor_seconds}

    better = _better(record, progress.best, job)
    progress.history.append(record)
    progress.loss = progress.seconds = progress.processor_seconds = 0.0
    if better:
        progress.best_epoch = epoch
    if fabric.is_global_zero:
        write_history(job.folder, progress)
        if job.verbose and (epoch + 1) % max(1, job.settings.epochs // _PRINTED) == 0:
            _print(record, job.settings.epochs)
    return better


def _better(record: Record, best: Record | None, job: Job) -> bool:
    """Whether an epoch is better than the best; the training loss decides if both have the same monitored number."""
    value, other = _monitored(record, job), None if best is None else _monitored(best, job)
    if best is not None and value == other:
        return record["loss"] < best["loss"]
    return job.settings.better(value, other)


def _print(record: Record, epochs: int) -> None:
    """Print the numbers of an epoch, above the progress bar if there is one."""
    from tqdm import tqdm

    numbers = {"loss": record["loss"]} | {f"validation {name}": x for name, x in record.get("validation", {}).items()}
    text = ", ".join(f"{name} {'not finite' if x is None else f'{x:.4f}'}" for name, x in numbers.items())
    tqdm.write(f"epoch {record['epoch'] + 1} of {epochs}: {text}")


def _validate(validate: Validate, module: nn.Module) -> dict[str, float | None]:
    """Validation numbers, None for those that are not finite, since JSON cannot hold them."""
    module.eval()
    with torch.no_grad():
        numbers = validate(module)
    if not isinstance(numbers, Mapping):
        raise InvalidTypeError(
            f"validate must return a dict of numbers, but got {type(numbers).__name__}: give the number a name"
        )
    values = {str(name): float(value) for name, value in numbers.items()}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _monitored(record: Record, job: Job) -> float | None:
    """Number in a record by which epochs are compared."""
    if job.settings.monitor is None:
        return record["loss"]
    if job.settings.monitor not in record["validation"]:
        raise InvalidValueError(
            f"validate must return the monitored number {job.settings.monitor!r}, "
            f"but got {list(record['validation'])}: add it, or monitor one of these"
        )
    return record["validation"][job.settings.monitor]


def write_history(folder: Path, progress: Progress) -> None:
    """Write the records of all epochs up to now."""
    write_json(folder / HISTORY, {"best_epoch": progress.best_epoch, "epochs": progress.history})
