"""One row of keys, and its relaxed 2-hot vector at four temperatures."""

import torch
from matplotlib import pyplot as plt

import khot

keys = torch.tensor([0.2, 2.6, 1.6, -0.6, 1.1, -1.5])
fig, axes = plt.subplots(1, 5, figsize=(8, 2.2), sharex=True)
axes[0].bar(range(6), keys, color="#4c78a8")
axes[0].set_title("keys")
for ax, temperature in zip(axes[1:], (0.1, 0.5, 1.0, 5.0), strict=True):
    ax.bar(range(6), khot.successive_softmax(keys, 2, temperature), color="#f58518")
    ax.set_title(f"t = {temperature:g}")
    ax.set_ylim(0, 1.1)
for ax in axes:
    ax.set_xticks(range(6), range(1, 7))
    ax.set_xlabel("item")
