"""
What a first call costs
=======================

On the CPU, khot compiles its loops when they are first needed, and keeps them on disk. The same lines run in two new
processes: the first finds an empty folder, the second finds the loops there, as it would after ``khot warmup``.
"""

import json
import os
import subprocess
import sys
import tempfile

import matplotlib.pyplot as plt

example = """
import json, time
import torch, khot
imports = time.process_time()
logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().requires_grad_()

def sample():
    start = time.process_time()
    chosen = khot.sample_subset(logits, k=2, temperature=0.5)
    chosen.dot(torch.tensor([1.0, 2.0, 3.0, 4.0])).backward()
    return time.process_time() - start

first = sample()
print(json.dumps({"imports": imports, "first sample": first, "second sample": sample()}))
"""


def run(folder):
    """Processor seconds of each part of the example, with machine code kept in this folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", example], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


with tempfile.TemporaryDirectory() as folder:
    seconds = {"nothing on disk": run(folder), "loops on disk": run(folder)}

# %%
# A second sample in the same process takes next to nothing. ``khot warmup`` compiles the loops of all operators, for
# both dtypes and all temperatures; this example needs only a few of them.

for name, times in seconds.items():
    print(f"{name}: " + ", ".join(f"{part} {time:.3f} s" for part, time in times.items()))

fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
for part, before, colour in (("imports", None, "#cccccc"), ("first sample", "imports", "#f58518")):
    left = [times[before] if before else 0 for times in seconds.values()]
    ax.barh(list(seconds), [times[part] for times in seconds.values()], left=left, color=colour, label=part)
ax.invert_yaxis()
ax.set_xlabel("processor seconds")
ax.legend()
plt.show()
