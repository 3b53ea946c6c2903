"""sample_subset with its noise against the textbook with torch.distributions.Gumbel, forward and backward."""

import torch

import khot
from benchmarks.common import best, numbers_of_threads, textbook, times_faster, write

BATCH, N, K, TEMPERATURE = 1_000, 400, 10, 0.5


def usual(logits: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    zero = torch.zeros(())
    return textbook(logits + torch.distributions.Gumbel(zero, zero + 1).sample(logits.shape), k, temperature)


def main() -> None:
    logits, claims = torch.randn(BATCH, N, generator=torch.Generator().manual_seed(0)), []
    standard = torch.distributions.Gumbel(0.0, 1.0)
    for threads in numbers_of_threads():
        torch.set_num_threads(threads)
        noise, rand = best(lambda: khot.gumbel_keys(logits), lambda: standard.sample(logits.shape))
        what = f"{BATCH} x {N}, k = {K}, t = {TEMPERATURE}, threads = {threads}"
        claims += [
            {
                "what": f"{what}: times faster",
                "at_least": 5,
                **times_faster(khot.sample_subset, usual, logits, K, TEMPERATURE),
            },
            {"what": f"{what}: noise alone, times faster", "measured": rand / noise, "ms": noise * 1e3},
        ]
    write("sampling", claims)


if __name__ == "__main__":
    main()
