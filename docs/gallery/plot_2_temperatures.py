"""
One sample over its temperatures
================================

The same Gumbel keys, relaxed at temperatures from nearly discrete to nearly uniform, by two relaxations. The entries of
``capped_simplex`` are at most 1; those of ``successive_softmax`` need not be.
"""

import matplotlib.pyplot as plt
import torch

import khot

logits = torch.linspace(1, -1, 12)
keys = khot.gumbel_keys(logits, torch.Generator().manual_seed(3))
temperatures = torch.logspace(-1.5, 1.5, 60)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
for ax, relaxation in zip(axes, (khot.successive_softmax, khot.capped_simplex), strict=True):
    # one row of keys for each temperature: a tensor temperature has one entry a row
    vectors = relaxation(keys.expand(len(temperatures), -1), 3, temperatures)
    mesh = ax.pcolormesh(temperatures, range(12), vectors.T, vmin=0, vmax=1, cmap="Oranges")
    ax.set_xscale("log")
    ax.set_xlabel("temperature")
    ax.set_title(f"{relaxation.__name__}, largest entry {vectors.max():.3f}", fontsize=10)
axes[0].set_ylabel("item")
axes[0].invert_yaxis()
fig.colorbar(mesh, ax=axes, label="entry of the 3-hot vector")
plt.show()
