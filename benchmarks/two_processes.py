"""Short trainings by two processes, one after the other while all cores are busy: how many end well.

A process that ends while threads of its process group are alive can be aborted by the C++ runtime, rarely, and more
often on a busy machine.

Usage: python -m benchmarks.two_processes [number of trainings] [most minutes]
"""

import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.multiprocessing import ProcessExitedException

from benchmarks.common import write
from khot.training import Settings, fit, gather_with_grad

TRAININGS, MINUTES = 100, 60.0
SETTINGS = Settings(epochs=2, batch_size=10, monitor="size")


def loss(module: nn.Module, batch: Tensor, step) -> Tensor:
    return gather_with_grad(module(batch)).square().mean()


def size(module: nn.Module) -> dict[str, float]:
    return {"size": sum(parameter.square().sum().item() for parameter in module.parameters())}


def train(folder: Path) -> str:
    """One training; its outcome in a word or two."""
    rows = torch.randn(50, 5, generator=torch.Generator().manual_seed(0))
    try:
        fit(nn.Linear(5, 3), loss, rows, SETTINGS, validate=size, folder=folder, devices=2)
    except ProcessExitedException as error:
        return f"exit code {error.exit_code}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "ended well"


def spin() -> None:
    while True:
        pass


def main(trainings: int = TRAININGS, minutes: float = MINUTES) -> None:
    began, outcomes = time.monotonic(), Counter()
    load = [multiprocessing.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in load:
        process.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            while outcomes.total() < trainings and time.monotonic() - began < 60 * minutes:
                outcomes[train(Path(folder) / str(outcomes.total()))] += 1
                print(f"{outcomes.total()} trainings: {dict(outcomes)}", flush=True)
    finally:
        for process in load:
            process.terminate()
    ran, well = outcomes.total(), outcomes["ended well"]
    what = f"trainings by two processes that end well, of {ran} under load"
    took = round((time.monotonic() - began) / 60, 1)
    write("two_processes", [{"what": what, "measured": well, "at_least": ran, "outcomes": outcomes, "minutes": took}])


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
