"""Peak memory of forward and backward beyond the input, in its own process after a warm-up."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import torch

import khot
from benchmarks.common import gumbel, textbook, write

BATCH, N, K = 256, 100_000, 100


def resident(field: str) -> int:
    """Resident memory in bytes: now (VmRSS) or the largest so far (VmHWM)."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(field))
    return int(line.split()[1]) * 1024


def pass_over(batch: int, function: Callable[..., torch.Tensor]) -> float:
    """Peak memory of one pass over the input, in units of it."""
    once(gumbel(2, 2_000), function)
    keys = torch.zeros(batch, N)
    for b in range(batch):
        keys[b] = gumbel(1, N, seed=b)[0]
    Path("/proc/self/clear_refs").write_text("5")  # the largest so far is now
    before = resident("VmRSS")
    once(keys, function)
    return (resident("VmHWM") - before) / (keys.numel() * keys.element_size())


def once(keys: torch.Tensor, function: Callable[..., torch.Tensor]) -> None:
    leaf = keys.requires_grad_()
    function(leaf, K, 1.0).backward(torch.ones(1).expand(keys.shape))
    leaf.requires_grad_(False).grad = None


def measure(name: str, batch: int) -> float:
    """`pass_over` in a process of its own."""
    function = {"khot": khot.successive_softmax, "textbook": textbook}[name]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(pass_over, (batch, function))


def main() -> None:
    ours = measure("khot", BATCH)
    theirs = measure("textbook", 4)  # a full batch does not fit on most machines
    write(
        "memory",
        [
            {"what": f"{BATCH} x {N}, k = {K}: inputs of memory", "measured": ours, "at_most": 6},
            {"what": f"4 x {N}, k = {K}: inputs of memory, textbook loop", "measured": theirs},
        ],
    )


if __name__ == "__main__":
    main()
