"""The plain loop, which serves other devices and a CPU without Numba, against the textbook loop, forward and backward.

With one thread, on the CPU: launches and waiting on a device are counted by tests, its time is not measured.
"""

import torch

import khot
from benchmarks.common import gumbel, textbook, times_faster, write
from khot import _jit

TABLES = [  # batch, n, k, temperature, times the textbook loop's time at most
    (100, 5_000, 5, 1.0, 2),
    (1_000, 400, 10, 1.0, 2),
    (100, 5_000, 5, 0.5, 2),
    (1_000, 400, 10, 0.5, 2),
    (100, 5_000, 5, 0.1, None),
]


def main() -> None:
    torch.set_num_threads(1)
    available, _jit.AVAILABLE = _jit.AVAILABLE, False
    claims = []
    for batch, n, k, temperature, most in TABLES:
        measured = times_faster(textbook, khot.successive_softmax, gumbel(batch, n), k, temperature)
        what = f"without Numba: {batch} x {n}, k = {k}, t = {temperature}: time over that of the textbook loop"
        claims.append({"what": what, **({"at_most": most} if most else {}), **measured})
    _jit.AVAILABLE = available
    write("plain_loop", claims)


if __name__ == "__main__":
    main()
