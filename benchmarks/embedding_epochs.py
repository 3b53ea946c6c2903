"""Seconds of an epoch of the paper's neighbour embedding of MNIST, compared with the step as it is usually written.

60,000 rows of 784 numbers in batches of 1,000 through the paper's network. The rows are random: no step takes longer or
less for it. Both do the same encoder and optimizer steps, which are also timed alone.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.common import best, numbers_of_threads, write
from khot.embed import SigmoidNet, input_logits, subset_sne_loss
from khot.training import Adam

ROWS, BATCH, COLUMNS, DIMENSIONS, TEMPERATURE, BIAS = 60_000, 1_000, 784, 2, 0.1, 1e-8


def ours(rows: Tensor, embeddings: Tensor) -> Tensor:
    return subset_sne_loss(input_logits(rows), embeddings, 1, TEMPERATURE, bias=BIAS)


def usual(rows: Tensor, embeddings: Tensor) -> Tensor:
    """Noise from torch.distributions in both spaces, and the relaxed vector of every row in full."""
    standard = torch.distributions.Gumbel(0.0, 1.0)
    target = (_logits(rows) + standard.sample((BATCH, BATCH))).argmax(1)
    relaxed = torch.softmax((_logits(embeddings) + standard.sample((BATCH, BATCH))) / TEMPERATURE, 1)
    chosen = torch.nn.functional.one_hot(target, BATCH)
    return -(chosen * torch.log(relaxed + BIAS)).sum(1).mean()


def _logits(points: Tensor) -> Tensor:
    squares = points.square().sum(1)
    return (2 * points @ points.T - squares[:, None] - squares).fill_diagonal_(-torch.inf)


def no_loss(rows: Tensor, embeddings: Tensor) -> Tensor:
    return embeddings.sum()


def main() -> None:
    rows = torch.rand(BATCH, COLUMNS, generator=torch.Generator().manual_seed(0))
    module = SigmoidNet(COLUMNS, (500, 500, 2000), DIMENSIONS)
    optimizer = Adam()(module.parameters())

    def step(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        optimizer.zero_grad()
        loss(rows, module(rows)).backward()
        optimizer.step()

    claims = []
    for threads in numbers_of_threads():
        torch.set_num_threads(threads)
        times = best(lambda: step(ours), lambda: step(usual), lambda: step(no_loss), seconds=15.0)
        own, other, rest = (seconds * ROWS / BATCH for seconds in times)
        what = f"MNIST, batches of {BATCH:,}, threads = {threads}"
        claims += [
            {"what": f"{what}: seconds an epoch", "measured": own},
            {"what": f"{what}: seconds an epoch as usually written", "measured": other},
            {"what": f"{what}: seconds an epoch of encoder and optimizer", "measured": rest},
            {"what": f"{what}: loss alone, times faster", "measured": (other - rest) / (own - rest)},
        ]
    write("embedding_epochs", claims)


if __name__ == "__main__":
    main()
