"""Two laws over subsets of the same weights: successive draws, as a sum over orders, and conditional Poisson."""

from itertools import permutations

import torch
from matplotlib import pyplot as plt

import khot

weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
subsets = khot.Subset(weights.log(), 2).enumerate_support()
ordered = khot.OrderedSubset(weights.log(), 2)
product = torch.where(subsets.bool(), weights, 1).prod(-1)
poisson = product / product.sum()
fig, ax = plt.subplots(figsize=(8, 3))
total, names = torch.zeros(len(subsets), dtype=torch.float64), []
for i, subset in enumerate(subsets):
    members = subset.nonzero().flatten().tolist()
    names.append("{" + ", ".join(str(item + 1) for item in members) + "}")
    for colour, order in zip(("#f58518", "#fbbf80"), permutations(members), strict=True):
        p, bottom = ordered.log_prob(torch.tensor(order)).exp().item(), total[i].item()
        ax.bar(i - 0.2, p, 0.38, bottom=bottom, color=colour)
        label = f"{order[0] + 1}, {order[1] + 1}"
        ax.text(i - 0.2, bottom + p / 2, label, ha="center", va="center", fontsize=7)
        total[i] += p
ax.bar([i + 0.2 for i in range(len(subsets))], poisson, 0.38, color="#4c78a8", label="conditional Poisson")
ax.bar(0, 0, color="#f58518", label="p(S|w): the orders of each subset, stacked")
ax.set_xticks(range(len(subsets)), names)
ax.set_ylabel("probability")
ax.set_title(f"w = {weights.tolist()}, k = 2: total variation distance {(total - poisson).abs().sum() / 2:.3f}")
ax.legend(loc="upper left")
