"""Three races of four items: item i finishes at an exponential time with rate w_i, and the first two win."""

import torch
from matplotlib import pyplot as plt

weights = torch.tensor([0.1, 0.2, 0.3, 0.4])
noise = torch.rand(3, 4, generator=torch.Generator().manual_seed(58))
times = -noise.log() / weights
fig, axes = plt.subplots(1, 3, figsize=(8, 2.3), sharex=True, sharey=True)
for ax, finish in zip(axes, times, strict=True):
    winners = finish.argsort()[:2].tolist()
    for item, time in enumerate(finish.tolist()):
        colour = "#f58518" if item in winners else "#b8b8b8"
        ax.hlines(item, 0, time, color=colour, linewidth=2)
        ax.plot(time, item, "o", color=colour, markersize=9)
    ax.axvline(finish[winners[-1]], color="#444444", linewidth=0.8, linestyle=":")
    ax.set_title("subset {" + ", ".join(str(i + 1) for i in sorted(winners)) + "}")
    ax.set_xlabel("finishing time")
axes[0].set_yticks(range(4), [f"item {i + 1}, w = {w:.1f}" for i, w in enumerate(weights.tolist())])
axes[0].invert_yaxis()
axes[0].set_xlim(0, None)
