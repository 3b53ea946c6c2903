"""Time of forward and backward against n and k, compared with what a user would pick instead, as a table and a plot."""

import importlib
import time
from collections.abc import Callable

import torch

import khot
from benchmarks import pictures
from benchmarks.common import RESULTS, best, forward_backward, gumbel, textbook, write

SIZES, COUNTS, BATCH, TEMPERATURE = (128, 1_024, 8_192, 65_536), (4, 64), 16, 1.0
LONGEST = 2.0  # seconds for one pass, beyond which larger sizes are left out
UNROLLS = 4  # largest k for torch.compile, which takes minutes to compile a longer loop
QUADRATIC = 1_024  # largest n for a peer with an n x n matrix


def compiled_textbook(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    return torch.compile(textbook, dynamic=False)(keys, k, temperature)


def budget(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    return importlib.import_module("entmax").budget_bisect(keys / temperature, budget=k)


def sorting_network(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    network = importlib.import_module("difftopk").DiffTopkNet("bitonic", keys.shape[-1], k, steepness=1 / temperature)
    return network(keys)[1].sum(-1)


def soft_rank(keys: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    ranks = importlib.import_module("torchsort").soft_rank(keys, regularization_strength=temperature)
    return torch.sigmoid(ranks - (keys.shape[-1] - k))


PEERS: dict[str, Callable[..., torch.Tensor]] = {
    "khot.successive_softmax": khot.successive_softmax,
    "khot.capped_simplex": khot.capped_simplex,
    "textbook loop": textbook,
    "torch.compile of the textbook loop": compiled_textbook,
    "entmax budget_bisect": budget,
    "difftopk DiffTopkNet": sorting_network,
    "torchsort soft_rank": soft_rank,
}


def times(function: Callable[..., torch.Tensor], k: int) -> dict[int, float]:
    """Seconds by n, up to the size at which it takes too long or fails."""
    result: dict[int, float] = {}
    for n in SIZES:
        if (function is sorting_network and n > QUADRATIC) or (function is compiled_textbook and k > UNROLLS):
            break
        once = forward_backward(function, gumbel(BATCH, n), k, TEMPERATURE)
        once()
        began = time.perf_counter()
        once()
        if time.perf_counter() - began > LONGEST:
            break
        result[n] = best(once, seconds=1.0)[0]
    return result


def main() -> None:
    claims, table = [], {}
    for name, function in PEERS.items():
        for k in COUNTS:
            try:
                table[name, k] = times(function, k)
            except Exception as error:
                print(f"  {name} is left out: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
                break
    for (name, k), row in table.items():
        ours = table["khot.successive_softmax", k]
        for n, seconds in row.items():
            claims.append(
                {"what": f"{name}, n = {n}, k = {k}: ms", "measured": seconds * 1e3, "over_khot": seconds / ours[n]}
            )
    write("peers", claims)
    pictures.peers().savefig(RESULTS / "peers.png", dpi=150)


if __name__ == "__main__":
    main()
