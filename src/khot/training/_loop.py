"""The training loop, written to be read from top to bottom."""

import atexit
import copy
import math
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from khot._files import write_json, write_tensors
from khot.errors import DivergedError, InvalidTypeError, InvalidValueError, KhotError, RunFolderError
from khot.training._batches import Batches
from khot.training._checkpoints import Saver, read
from khot.training._epochs import WEIGHTS, close_epoch, write_history
from khot.training._interrupt import ControlC
from khot.training._job import Job
from khot.training._means import update_mean
from khot.training._snapshot import Progress, Weights, copy_weights, finite, pack, unpack
from khot.training.folders import how_to_resume
from khot.training.processes import agree, leave_group
from khot.training.steps import Step, key

ERROR = "error.json"


def train(job: Job, fabric: Any, module: nn.Module) -> BaseException | None:
    """Run the loop in one of the processes. An exception that stops all of them is returned, for the parent to raise.

    An error of a single process goes into a file, because the parent receives only the text of its traceback.
    """
    if fabric.world_size > 1:
        atexit.register(leave_group)  # after errors have been reported to the parent
    try:
        _train(job, fabric, module)
    except (DivergedError, KeyboardInterrupt) as stop:
        return stop
    except KhotError as error:
        write_json(job.folder / ERROR, {"kind": type(error).__name__, "message": str(error)})
        raise
    return None


def _train(job: Job, fabric: Any, module: nn.Module) -> None:
    settings, device, rank = job.settings, fabric.device, fabric.global_rank
    fabric.to_device(module)  # before the optimizer, which depends on the device of the parameters
    optimizer = settings.optimizer([p for p in module.parameters() if p.requires_grad])
    model, optimizer = fabric.setup(module, optimizer)
    batches = Batches(job.data, settings.batch_size, settings.random_state, rank, fabric.world_size)
    steps = settings.epochs * batches.per_epoch

    progress, best, precision = Progress(), Weights(), fabric.strategy.precision
    parts = {"module": module}
    if settings.averaging is not None:
        parts["mean"] = copy.deepcopy(module).requires_grad_(False)
    result = parts.get("mean", module)
    if job.checkpoint:
        best, progress = _restored(job.checkpoint, parts, optimizer, precision)
    saver = Saver(job, module, lambda: pack(parts, optimizer, best, progress, precision), active=rank == 0)

    generators = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with generators, ControlC() as control_c, _bar(steps, progress.step, shown=rank == 0) as bar:
        model.train()
        for number in range(progress.step, steps):
            if settings.patience is not None and progress.epochs_since_best >= settings.patience:
                break

            with progress.clock():
                # All seeds follow from the number of the step, so that a resumed run needs no state of generators.
                torch.manual_seed(key(settings.random_state, "torch", number, rank))
                noise = torch.Generator(device).manual_seed(key(settings.random_state, "noise", number, rank))
                epoch, place = divmod(number, batches.per_epoch)
                rows = batches.rows(number)
                step = Step(number, epoch, rows, settings.temperature_at(number), noise)
                for group in optimizer.param_groups:
                    group["lr"] = settings.rate_at(number)

                loss = _scalar(job.loss(model, fabric.to_device(batches.take(rows)), step))
                value, stop = agree(fabric, loss, control_c.pressed)
                if not math.isfinite(value):
                    raise DivergedError(f"the loss is {value} at step {number}", saver.last)
                optimizer.zero_grad()
                fabric.backward(loss)
                if settings.clip_norm is not None:
                    fabric.clip_gradients(model, optimizer, max_norm=settings.clip_norm, error_if_nonfinite=False)
                optimizer.step()
                if settings.averaging is not None:
                    update_mean(result, module, settings.averaging, number)

                progress.step += 1
                progress.loss += value

            bar.set_postfix_str(f"epoch {epoch + 1}/{settings.epochs}, loss {value:.4g}", refresh=False)
            bar.update()

            end_of_epoch = place == batches.per_epoch - 1
            if end_of_epoch:
                if not finite(module):
                    raise DivergedError(f"weights are not finite after step {number}", saver.last)
                if close_epoch(job, fabric, result, progress, batches.per_epoch):
                    best = copy_weights(result)
                model.train()
            saver.save_if_due(progress.step, end_of_epoch)
            if stop:
                saver.save(progress.step)
                raise _interrupted(saver)

    saver.save(progress.step)
    if rank == 0:
        write_history(job.folder, progress)
        write_tensors(job.folder / WEIGHTS, best or copy_weights(result))
    if control_c.pressed:
        raise _interrupted(saver)


def _restored(
    checkpoint: Path, modules: dict[str, nn.Module], optimizer: Any, precision: Any
) -> tuple[Weights, Progress]:
    """State of a checkpoint, which may have been edited."""
    try:
        best, progress = unpack(*read(checkpoint), modules, optimizer, precision)
        if progress.step < 0 or (progress.best is None) != (not best):
            raise ValueError("its numbers do not fit together")
    except (LookupError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{checkpoint} is damaged ({type(error).__name__}: {error}): delete it to continue from the one before"
        ) from error
    return best, progress


def _scalar(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor) or loss.ndim:
        got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise InvalidTypeError(f"the loss must return a tensor of shape (), but got {got}: take its mean")
    if not loss.requires_grad:
        raise InvalidValueError(
            "the loss must depend on the parameters of the module, but got one without a gradient: "
            "use the module's output, without detach() or no_grad()"
        )
    return loss


def _bar(steps: int, done: int, shown: bool) -> Any:
    """Progress bar on a terminal, and nothing elsewhere."""
    from tqdm import tqdm

    return tqdm(total=steps, initial=done, unit="step", disable=not (shown and sys.stderr.isatty()))


def _interrupted(saver: Saver) -> KeyboardInterrupt:
    return KeyboardInterrupt(
        f"stopped by Ctrl-C; the last checkpoint is {saver.last}: {how_to_resume(saver.job.folder)}"
    )
