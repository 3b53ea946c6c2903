"""The other relaxations in units of the textbook loop, and the exact inclusion probabilities in units of log_prob."""

import torch

import khot
from benchmarks.common import best, forward_backward, gumbel, textbook, write

CASES = [(100, 100, 5, 1.0), (100, 1_000, 5, 1.0), (32, 4_096, 64, 0.5)]
OPERATORS = [khot.neuralsort, khot.softsort, khot.capped_simplex]


def exact_law(n: int, k: int) -> float:
    """Inclusion probabilities with their gradient, in units of log_prob with its own."""
    logits = torch.randn(1, n, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = khot.Subset(logits.detach(), k).sample(generator=torch.Generator().manual_seed(1))
    log_prob, inclusion = best(
        lambda: khot.Subset(logits, k).log_prob(value).sum().backward(),
        lambda: khot.Subset(logits, k).inclusion_probs.square().sum().backward(),
    )
    return inclusion / log_prob


def main() -> None:
    claims = []
    for batch, n, k, temperature in CASES:
        functions = [forward_backward(f, gumbel(batch, n), k, temperature) for f in (textbook, *OPERATORS)]
        loop, *others = best(*functions)
        for function, seconds in zip(OPERATORS, others, strict=True):
            what = f"{function.__name__}, {batch} x {n}, k = {k}: textbook loops"
            claims.append({"what": what, "measured": seconds / loop})
    claims.append({"what": "inclusion_probs, n = 1000, k = 50: log_probs", "measured": exact_law(1_000, 50)})
    write("operators", claims)


if __name__ == "__main__":
    main()
