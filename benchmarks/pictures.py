"""The two pictures of the README: the idea of the paper, drawn by khot itself, and time compared with other libraries.

`make readme` draws both. The second one is made from `results/peers.json`, which `python -m benchmarks.peers` writes.
"""

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import khot
from benchmarks.common import RESULTS
from benchmarks.tables.measured import peer_times

WEIGHTS, K, SEED = (0.28, 0.22, 0.18, 0.14, 0.10, 0.08), 3, 3
TEMPERATURES = 0.05, 0.2, 0.5, 1.0, 5.0
CHOSEN, OTHERS = ("#d1495b", "#edae49", "#4f9da6"), "#b8bfc6"
COLOURS = ("#d1495b", "#00798c", "#30343f", "#8d99ae", "#edae49", "#66a182", "#7b5ea7")


def draw() -> list[Path]:
    """Draw both pictures; returns their paths."""
    idea().savefig(place := RESULTS / "idea.png", dpi=150)
    peers().savefig(other := RESULTS / "peers.png", dpi=150)
    return [place, other]


def idea() -> Figure:
    """One draw of three of eight items: the race, the keys, and the relaxed k-hot vector at some temperatures."""
    logits = torch.tensor(WEIGHTS).log()
    keys = khot.gumbel_keys(logits, torch.Generator().manual_seed(SEED))
    order = keys.argsort(descending=True).tolist()
    colours = [CHOSEN[order.index(i)] if order.index(i) < K else OTHERS for i in range(len(WEIGHTS))]
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    race, bars, relaxed = figure.subplots(1, 3)
    _race(race, (-keys).exp().tolist(), order, colours)
    _keys(bars, keys.tolist(), sorted(keys.tolist())[-K], colours)
    _relaxed(relaxed, keys, colours)
    for axes in (race, bars, relaxed):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _race(axes: Axes, arrivals: list[float], order: list[int], colours: list[str]) -> None:
    for item, (time, colour) in enumerate(zip(arrivals, colours, strict=True)):
        axes.hlines(item, 0, time, color=colour, linewidth=1.5)
        axes.scatter(time, item, s=900 * WEIGHTS[item] + 25, color=colour, zorder=3, edgecolor="white")
    for place, item in enumerate(order[:K]):
        label = ("first", "second", "third")[place]
        axes.annotate(label, (arrivals[item], item), (10, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set(title="a race: first come, first chosen", xlabel="arrival time, exponential with rate w", xlim=(0, None))
    axes.set_yticks(range(len(WEIGHTS)), [f"{i}: w = {weight:.2f}" for i, weight in enumerate(WEIGHTS, 1)])
    axes.set_ylim(len(WEIGHTS) - 0.4, -0.6)


def _keys(axes: Axes, keys: list[float], least: float, colours: list[str]) -> None:
    bottom = min(keys) - 0.5
    axes.bar(range(len(keys)), [key - bottom for key in keys], bottom=bottom, color=colours, width=0.75)
    axes.axhline(least, color="#30343f", linewidth=1, linestyle="--")
    axes.set(title=f"keys = log w + noise: the top {K}", xlabel="item", ylabel="key = −log(arrival time)")
    axes.set_xticks(range(len(keys)), [str(item + 1) for item in range(len(keys))])


def _relaxed(axes: Axes, keys: torch.Tensor, colours: list[str]) -> None:
    for row, temperature in enumerate(TEMPERATURES):
        for item, entry in enumerate(khot.successive_softmax(keys, K, temperature).tolist()):
            square = {"facecolor": to_rgba(colours[item], min(entry, 1)), "edgecolor": "#e6e8ea"}
            axes.add_patch(Rectangle((item - 0.5, row - 0.5), 1, 1, **square))
            axes.text(item, row, f"{entry:.2f}", ha="center", va="center", fontsize=9)
    axes.set(title=f"relaxed: differentiable {K}-hot", xlabel="item", ylabel="temperature")
    axes.set(xlim=(-0.5, len(keys) - 0.5), ylim=(len(TEMPERATURES) - 0.5, -0.5))
    axes.set_xticks(range(len(keys)), [str(item + 1) for item in range(len(keys))])
    axes.set_yticks(range(len(TEMPERATURES)), [f"{t:g}" for t in TEMPERATURES])


def peers() -> Figure:
    """Time of forward and backward against n, of khot and of what a user would take instead."""
    found = peer_times()
    counts, sizes = (sorted({column[i] for own in found.values() for column in own}) for i in (0, 1))
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, k in zip(figure.subplots(1, len(counts), sharey=True), counts, strict=True):
        for colour, (name, own) in zip(COLOURS, found.items(), strict=False):
            ours, points = name == "khot.successive_softmax", {n: own[k, n] for n in sizes if (k, n) in own}
            style = {"linewidth": 3 if ours else 1.4, "marker": "o", "markersize": 7 if ours else 4}
            axes.loglog(list(points), list(points.values()), color=colour, label=name, zorder=3 if ours else 2, **style)
        axes.set(title=f"k = {k}", xlabel="items n")
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axes.minorticks_off()
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("forward and backward, ms (16 rows)")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
