"""Time of the relaxations, forward and backward, in units of the textbook loop, into benchmarks/results/core.json.

The textbook loop is the usual float32 code: k softmaxes and log(1 - p) under autograd. Every figure is a ratio inside
one run, best of several repeats after a warm-up; below 1 is faster than the loop. Run it with nothing else running.
"""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch

import khot

CASES = [(100, 100, 5, 1.0), (100, 1000, 5, 1.0), (1000, 400, 10, 0.5), (32, 4096, 64, 0.5)]
OPERATORS = [khot.successive_softmax, khot.neuralsort, khot.softsort, khot.capped_simplex]
REPEATS = 5


def textbook(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    x, total = keys, torch.zeros_like(keys)
    for _ in range(k):
        p = torch.softmax(x / temperature, -1)
        total = total + p
        x = x + torch.log((1 - p).clamp_min(1e-20))
    return total


def seconds(function: Callable, keys: torch.Tensor, k: int, temperature: float) -> float:
    def once() -> float:
        leaf = keys.clone().requires_grad_()
        began = time.perf_counter()
        function(leaf, k, temperature).square().sum().backward()
        return time.perf_counter() - began

    once()
    return min(once() for _ in range(REPEATS))


def exact_law(n: int, k: int) -> dict[str, float]:
    """Inclusion probabilities with their gradient, in units of log_prob with its own."""
    logits = torch.randn(1, n, generator=torch.Generator().manual_seed(0))
    value = khot.Subset(logits, k).sample(generator=torch.Generator().manual_seed(1))
    log_prob = seconds(lambda x, k, _: khot.Subset(x, k).log_prob(value), logits, k, 1.0)
    inclusion = seconds(lambda x, k, _: khot.Subset(x, k).inclusion_probs, logits, k, 1.0)
    return {"n": n, "k": k, "log_prob_seconds": log_prob, "inclusion_probs": round(inclusion / log_prob, 1)}


def main() -> None:
    rows = []
    for batch, n, k, temperature in CASES:
        keys = khot.gumbel_keys(torch.zeros(batch, n), torch.Generator().manual_seed(0))
        loop = seconds(textbook, keys, k, temperature)
        ratios = {f.__name__: round(seconds(f, keys, k, temperature) / loop, 2) for f in OPERATORS}
        rows.append({"batch": batch, "n": n, "k": k, "temperature": temperature, "textbook_seconds": loop, **ratios})
        print(f"{batch} x {n}, k = {k}, t = {temperature}: " + ", ".join(f"{name} {r}" for name, r in ratios.items()))
    law = exact_law(1000, 50)
    print(f"n = 1000, k = 50: inclusion_probs takes {law['inclusion_probs']} times as long as log_prob")
    machine = {"processor": platform.machine(), "threads": torch.get_num_threads(), "torch": torch.__version__}
    path = Path(__file__).parent / "results" / "core.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "repeats": REPEATS, "rows": rows, "exact": law}, indent=2) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
