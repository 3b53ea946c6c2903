"""Small trainings, with everything that a resumed run has to get right: dropout, noise, schedules, clipping."""

import atexit
import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from khot.schedules import Exponential
from khot.training import AdamW, Cosine, Run, Settings, WarmUp, fit, gather_with_grad

EVERY_STEP = 1e-9  # seconds between checkpoints
EPOCHS, PER_EPOCH = 3, 8
STEPS = EPOCHS * PER_EPOCH
SETTINGS = Settings(
    epochs=EPOCHS,
    batch_size=6,
    learning_rate=WarmUp(Cosine(0.02, steps=STEPS), steps=4),
    optimizer=AdamW(),
    temperature=Exponential(2.0, 0.5, steps=STEPS),
    clip_norm=1.0,
    monitor="error",
    random_state=3,
)


def data() -> tuple[Tensor, Tensor]:
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(50, 5, generator=noise)  # 50 rows: two of them are left out in every epoch
    return x, x.sum(1, keepdim=True).sin()


def network(dropout: float = 0.3) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 1))


def squared_error(module: nn.Module, batch: tuple[Tensor, Tensor], step) -> Tensor:
    x, y = batch
    return (module(x) - y).square().mean()


def noisy(module: nn.Module, batch: tuple[Tensor, Tensor], step) -> Tensor:
    """With noise from both sources, and a temperature."""
    x, y = batch
    x = x + 0.1 * torch.randn(x.shape, generator=step.generator) + 0.1 * torch.rand_like(x)
    return squared_error(module, (x, y), step) / step.temperature


def among_all(module: nn.Module, batch: tuple[Tensor, Tensor], step) -> Tensor:
    """Each row's own error, and its distance to the rows of all processes."""
    x, y = batch
    own = module(x)
    everyone, targets = gather_with_grad(own), gather_with_grad(y)
    return (own - y).square().mean() + ((own - everyone.T).square() * (y - targets.T).cos()).mean()


class NoteAtExit:
    """A loss; each process that gets it notes at its end whether there still is a process group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def __call__(self, module: nn.Module, batch: tuple[Tensor, Tensor], step) -> Tensor:
        return among_all(module, batch, step)

    def __setstate__(self, state: dict) -> None:
        self.__dict__ = state
        atexit.register(self.note)  # before the training begins, so after all that the training registers

    def note(self) -> None:
        there = torch.distributed.is_initialized()
        (self.folder / str(os.getpid())).write_text("there is a group" if there else "the group has ended")


def error_rate(module: nn.Module) -> dict[str, float]:
    x, y = data()
    return {"error": (module(x) - y).abs().mean().item(), "noise": torch.rand(()).item()}


def train(folder: Path, **options) -> tuple[Run, nn.Module]:
    """The whole training, with a few options changed."""
    module = network()
    options = {"validate": error_rate, "settings": SETTINGS, "loss": noisy, **options}
    run = fit(module, options.pop("loss"), data(), folder=folder, **options)
    return run, module


def without_seconds(history: list[dict]) -> list[dict]:
    return [{name: value for name, value in record.items() if not name.endswith("seconds")} for record in history]


def same(left: tuple[Run, nn.Module], right: tuple[Run, nn.Module]) -> bool:
    """Whether two trainings agree to the bit, in the best and the last weights and in the history."""
    weights = zip(left[1].parameters(), right[1].parameters(), strict=True)
    return (
        all(torch.equal(a, b) for a, b in weights)
        and last_tensors(left[0].folder) == last_tensors(right[0].folder)
        and without_seconds(left[0].history) == without_seconds(right[0].history)
        and left[0].best["epoch"] == right[0].best["epoch"]
    )


def last_tensors(folder: Path) -> bytes:
    return (max((folder / "checkpoints").glob("step-*")) / "tensors.safetensors").read_bytes()


def slow(module: nn.Module, batch: tuple[Tensor, Tensor], step) -> Tensor:
    """Print the number of the step, and leave enough time to be killed in it."""
    print(step.number, flush=True)
    time.sleep(0.01)
    return noisy(module, batch, step)


def interrupted(module: nn.Module, batch: tuple[Tensor, Tensor], step) -> Tensor:
    if step.number == 5 and os.environ.get("LOCAL_RANK") == "1":
        signal.raise_signal(signal.SIGINT)
    return squared_error(module, batch, step)


if __name__ == "__main__":
    train(Path(sys.argv[1]), loss=slow, resume=True, checkpoint_seconds=EVERY_STEP)
