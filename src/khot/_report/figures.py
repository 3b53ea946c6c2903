"""The figures, drawn with matplotlib, which loads only here."""

from collections.abc import Sequence
from pathlib import Path


def subset_histogram(
    path: Path,
    labels: Sequence[str],
    true: Sequence[float],
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    title: str,
) -> None:
    """Bars of empirical frequencies with their intervals, one colour a series, over the true probabilities."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(7.0, 1.1 * len(labels)), 4.2), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / max(1, len(series))
    for i, (name, heights, errors) in enumerate(series):
        centres = [x - 0.4 + width * (i + 0.5) for x in range(len(labels))]
        colour = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756")[i % 5]
        axes.bar(centres, heights, width * 0.92, yerr=errors, label=name, color=colour, ecolor="#333333", capsize=2)
    places = range(len(labels))
    left, right = [x - 0.44 for x in places], [x + 0.44 for x in places]
    axes.hlines(true, left, right, color="black", linewidth=1.6, label="true p(S|w)")
    axes.set_xticks(places, labels, rotation=0 if len(labels) <= 20 else 90)
    axes.set_xlabel("subset")
    axes.set_ylabel("probability")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def timing_lines(
    path: Path, candidates: Sequence[int], series: Sequence[tuple[str, Sequence[float]]], title: str
) -> None:
    """Seconds against the number of candidates, log-log; of two series in a row, one colour, the first is dashed."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for i, (name, seconds) in enumerate(series):
        colour, style = ("#4c78a8", "#f58518", "#54a24b")[i // 2 % 3], ("--", "-")[i % 2]
        axes.plot(candidates, seconds, style, color=colour, marker="o", markersize=5, linewidth=1.8, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(candidates, [f"{m:,}" for m in candidates])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("candidates m")
    axes.set_ylabel("seconds")
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
