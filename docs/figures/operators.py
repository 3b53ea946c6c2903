"""Every relaxation of one row of keys, over its temperatures."""

import torch
from matplotlib import pyplot as plt

from khot._relaxations import RELAXATIONS, find

keys = torch.tensor([2.5, 1.7, 1.3, 0.4, -0.5, -1.5], dtype=torch.float64)
temperatures = torch.logspace(-1.5, 1.5, 200, dtype=torch.float64)
fig, axes = plt.subplots(1, len(RELAXATIONS), figsize=(9, 2.8), sharey=True)
for ax, name in zip(axes, RELAXATIONS, strict=True):
    entries = find(name)(keys.expand(len(temperatures), -1), 2, temperatures)
    for item in range(len(keys)):
        ax.semilogx(temperatures, entries[:, item], color=plt.cm.viridis(item / 6), label=f"{keys[item]:g}")
    ax.axhline(1, color="#bbbbbb", linewidth=0.7, zorder=0)
    ax.set_title(name)
    ax.set_xlabel("temperature")
axes[0].set_ylabel("entry of the 2-hot vector")
axes[-1].legend(title="key", fontsize=7, title_fontsize=7)
