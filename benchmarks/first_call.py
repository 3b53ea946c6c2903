"""The first calls in a process: with nothing compiled, and with everything on disk. In processor seconds."""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.common import write

CODE = """
import json, time
began = time.process_time()
import torch
laps, last = {"import torch": time.process_time() - began}, time.process_time()
import khot

def lap(name):
    global last
    now = time.process_time()
    laps[name] = now - last
    last = now

seed = torch.Generator().manual_seed(0)
logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().requires_grad_()
a = khot.sample_subset(logits, k=2, temperature=0.5, generator=seed)
a.dot(torch.tensor([1.0, 2.0, 3.0, 4.0])).backward()
khot.sample_subset(logits, 2, 0.5, hard=True, generator=seed).detach()
law = khot.Subset(logits, k=2)
law.log_prob(torch.tensor([0.0, 0.0, 1.0, 1.0])).exp()
law.inclusion_probs.detach()
lap("example")
khot.sample_subset(logits, 2, 0.1, generator=seed).sum().backward()
lap("cold")
khot.warmup()
laps["everything"] = time.process_time() - began - laps["import torch"]
print(json.dumps(laps))
"""
_TRIES = 3


def seconds(folder: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout)


def main() -> None:
    empty, full = [], []
    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            empty.append(seconds(folder))
            full.append(seconds(folder))
    claims = []
    for name, what, most in [
        ("example", "nothing compiled: first example of the README", 5),
        ("cold", "nothing compiled: after it, a first row below temperature 0.5", 10),
        ("everything", "nothing compiled: everything, both dtypes", 30),
    ]:
        claims.append({"what": f"{what}, processor seconds", "measured": best(empty, name), "at_most": most})
    claims.append(
        {
            "what": "everything on disk: first example of the README, processor seconds after import torch",
            "measured": best(full, "example"),
            "at_most": 1,
        }
    )
    claims.append({"what": "import torch, processor seconds", "measured": best(full, "import torch")})
    write("first_call", claims)


def best(tries: list[dict[str, float]], name: str) -> float:
    return round(min(one[name] for one in tries), 2)


if __name__ == "__main__":
    main()
