"""The same race as Gumbel keys: log-weight plus noise; the two largest keys win."""

import torch
from matplotlib import pyplot as plt

import khot

logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
keys = khot.gumbel_keys(logits.expand(200, -1), torch.Generator().manual_seed(0))
chosen = khot.hard_topk(keys, 2).bool()
fig, (one, many) = plt.subplots(1, 2, figsize=(8, 2.8))
items = range(4)
row = 31
colours = ["#f58518" if c else "#b8b8b8" for c in chosen[row]]
one.scatter(items, logits, marker="_", s=700, color="#4c78a8", label="log-weight")
for item in items:
    one.annotate("", (item, keys[row, item]), (item, logits[item]), arrowprops={"arrowstyle": "->", "color": "#888888"})
one.scatter(items, keys[row], color=colours, s=80, zorder=3, label="key (orange: chosen)")
one.set_title("one draw")
one.legend(loc="upper left", fontsize=8)
shift = torch.linspace(-0.3, 0.3, len(keys))
for item in items:
    for flag, colour in ((False, "#cccccc"), (True, "#f58518")):
        mark = chosen[:, item] == flag
        many.scatter(item + shift[mark], keys[mark, item], s=5, color=colour)
many.set_title("200 draws")
for ax in (one, many):
    ax.set_xticks(items, [f"w = {w:.1f}" for w in logits.exp()])
    ax.set_ylabel("key")
    ax.margins(x=0.1, y=0.15)
