"""successive_softmax against the textbook loop, forward and backward, and forward in units of one torch.softmax.

Against the loop both with one thread and with all of torch's, which share the work of large tables only.
"""

import torch

import khot
from benchmarks.common import best, forward_backward, gumbel, numbers_of_threads, textbook, times_faster, write

AGAINST_TEXTBOOK = [  # batch, n, k, temperature, times faster
    (100, 100, 5, 1.0, 2),
    (100, 1_000, 5, 1.0, 4),
    (1_000, 400, 10, 0.5, 6),
    (100, 5_000, 5, 1.0, 15),
    (100, 10_000, 10, 0.5, 25),
    (32, 4_096, 64, 0.5, 12),
    (8, 100_000, 100, 1.0, 60),
    (8, 100_000, 100, 0.1, 60),
    (1, 1_000_000, 50, 1.0, 40),
]
IN_SOFTMAXES = [  # batch, n, k, temperature, at most
    (100, 5_000, 5, 1.0, 5),
    (100, 5_000, 16, 0.7, 5),
    (100, 10_000, 10, 1.0, 5),
    (8, 100_000, 16, 0.7, 5),
    (8, 100_000, 100, 1.0, 10),
]


def main() -> None:
    claims = []
    for threads in numbers_of_threads():
        torch.set_num_threads(threads)
        for batch, n, k, temperature, required in AGAINST_TEXTBOOK:
            what = f"{batch} x {n}, k = {k}, t = {temperature}, threads = {threads}: times faster"
            measured = times_faster(khot.successive_softmax, textbook, gumbel(batch, n), k, temperature)
            claims.append({"what": what, "at_least": required, **measured})
    for batch, n, k, temperature, allowed in IN_SOFTMAXES:
        keys = gumbel(batch, n)
        ours, softmax = best(
            lambda keys=keys, k=k, t=temperature: khot.successive_softmax(keys, k, t),
            lambda keys=keys: torch.softmax(keys, -1),
        )
        what = f"{batch} x {n}, k = {k}, t = {temperature}: forward in softmaxes"
        claims.append({"what": what, "measured": ours / softmax, "at_most": allowed, "ms": ours * 1e3})
    keys = gumbel(8, 100_000)
    few, many = best(*(forward_backward(khot.successive_softmax, keys, k, 1.0) for k in (10, 100)))
    claims.append({"what": "8 x 100000: time at k = 100 over time at k = 10", "measured": many / few, "at_most": 2})
    write("speed", claims)


if __name__ == "__main__":
    main()
