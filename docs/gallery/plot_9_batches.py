"""
Rows of different length, each with its own k
=============================================

A batch of padded rows: padding has the logit ``-inf``, which makes an item absent. Each row has a k and a temperature
of its own. A row with fewer than k present items yields all that it has.
"""

import matplotlib.pyplot as plt
import torch

import khot

lengths = torch.tensor([10, 7, 4, 2])
logits = torch.zeros(4, 10).masked_fill(torch.arange(10) >= lengths[:, None], -torch.inf)
k = torch.tensor([5, 3, 1, 3])
temperature = torch.tensor([1.0, 0.5, 0.1, 1.0])

seed = torch.Generator().manual_seed(0)
sample = khot.sample_subset(logits, k, temperature, generator=seed)
print("sums:", sample.sum(-1).tolist())

# %%
# White is absent. The last row has two items, so both are chosen although its k is 3.

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
picture = ax.imshow(sample.masked_fill(logits == -torch.inf, torch.nan), vmin=0, vmax=1, cmap="Oranges")
names = [f"k = {i}, t = {t:g}, {n} items" for i, t, n in zip(k.tolist(), temperature.tolist(), lengths, strict=True)]
ax.set_yticks(range(4), names)
ax.set_xlabel("item")
fig.colorbar(picture)
plt.show()
