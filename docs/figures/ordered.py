"""The three relaxed one-hot vectors of one row of keys, by three relaxations at three temperatures."""

import torch
from matplotlib import pyplot as plt

import khot

keys = torch.tensor([2.5, 1.7, 1.3, 0.4, -0.5, -1.5])
fig, axes = plt.subplots(3, 3, figsize=(8, 4), sharex=True, sharey=True)
for row, relaxation in zip(axes, (khot.successive_softmax, khot.softsort, khot.neuralsort), strict=True):
    for ax, temperature in zip(row, (0.1, 0.5, 1.0), strict=True):
        vectors = relaxation(keys, 3, temperature, ordered=True)
        ax.imshow(vectors, vmin=0, vmax=1, cmap="Oranges", aspect="auto")
        largest = vectors.argmax(-1)
        ax.scatter(largest, range(3), s=12, color="#333333")
    row[0].set_ylabel(relaxation.__name__)
for ax, temperature in zip(axes[0], (0.1, 0.5, 1.0), strict=True):
    ax.set_title(f"t = {temperature:g}")
for ax in axes[-1]:
    ax.set_xticks(range(6), [f"{key:g}" for key in keys])
    ax.set_yticks(range(3), ["1st", "2nd", "3rd"])
    ax.set_xlabel("key")
