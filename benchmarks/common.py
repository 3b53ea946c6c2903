"""What all benchmarks share: the textbook loop, timing, the description of the machine, and the file of results."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from khot.experiments.runs import machine, write_result

_TURNS = 20  # of each function
_ROUNDS = 5
RESULTS = Path(__file__).parent / "results"


def textbook(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    """The successive softmax as it is usually written, under autograd."""
    x, total = keys / temperature, torch.zeros_like(keys)
    for _ in range(k):
        p = torch.softmax(x, -1)
        total = total + p
        x = x + torch.log(1 - p) / temperature
    return total


def gumbel(*shape: int, seed: int = 0) -> torch.Tensor:
    """Standard Gumbel keys in float32."""
    uniform = torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return -torch.log(-torch.log(uniform.clamp(1e-300, 1 - 1e-16))).float()


def numbers_of_threads() -> list[int]:
    """One, and as many as torch takes by itself."""
    return sorted({1, torch.get_num_threads()})


def best(*functions: Callable[[], Any], repeats: int = 2000, seconds: float = 3.0) -> list[float]:
    """The shortest time of each function after a warm-up; they take turns, so that all see the same machine.

    As many repeats as fit in about `seconds` for each, at least three and at most `repeats`.
    """
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    while any(_wanting(own, repeats, seconds) for own in times):
        for function, own in zip(functions, times, strict=True):
            turn = time.perf_counter() + seconds / _TURNS
            while _wanting(own, repeats, seconds) and time.perf_counter() < turn:
                began = time.perf_counter()
                function()
                own.append(time.perf_counter() - began)
    return [min(own) for own in times]


def times_faster(ours: Callable[..., Any], theirs: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """How many times faster than another function ours is, forward and backward.

    Each round has arrays of its own, as it matters where in memory they lie. The ratio is the median of the rounds.
    """
    rounds = [best(*(forward_backward(f, *arguments) for f in (ours, theirs)), seconds=1.0) for _ in range(_ROUNDS)]
    ratios = [other / own for own, other in rounds]
    return {"measured": statistics.median(ratios), "rounds": ratios, "ms": min(own for own, _ in rounds) * 1e3}


def _wanting(times: list[float], repeats: int, seconds: float) -> bool:
    return len(times) < 3 or (len(times) < repeats and sum(times) < seconds)


def forward_backward(function: Callable[..., torch.Tensor], keys: torch.Tensor, *rest: Any) -> Callable[[], None]:
    """One pass forward and backward, with a given cotangent, as a function without arguments."""
    cotangent = torch.randn(keys.shape, generator=torch.Generator().manual_seed(1))
    leaf = keys.clone().requires_grad_()

    def once() -> None:
        leaf.grad = None
        function(leaf, *rest).backward(cotangent)

    return once


def write(name: str, claims: list[dict[str, Any]]) -> None:
    """Print the claims and keep them in results/<name>.json. A claim has `what`, `measured`, and maybe bounds."""
    for claim in claims:
        print(line(claim))
    write_result(RESULTS / f"{name}.json", {"machine": machine(), "claims": claims})


def line(claim: dict[str, Any]) -> str:
    """A claim in a table."""
    return f"  {claim['what']:<70} {claim['measured']:>10.4g}  {verdict(claim)}"


def verdict(claim: dict[str, Any]) -> str:
    """Whether a claim holds."""
    if "at_least" in claim:
        return f">= {claim['at_least']:g}  {'holds' if claim['measured'] >= claim['at_least'] else 'FAILS'}"
    if "at_most" in claim:
        return f"<= {claim['at_most']:g}  {'holds' if claim['measured'] <= claim['at_most'] else 'FAILS'}"
    return ""
