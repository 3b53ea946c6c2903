"""Figures of probabilities and of times."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from khot._files import new_file

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#eeca3b", "#72b7b2", "#9d755d", "#ff9da6", "#79706e")
GRID = {"color": "#dddddd", "linewidth": 0.6}


@contextmanager
def drawing(
    path: Path, title: str, x: str = "", y: str = "", size: tuple[float, float] = (7.0, 4.2), dpi: int = 150
) -> Iterator[Any]:
    """Axes to draw on, with a title and names of x and y; at the end they are written as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    yield axes
    with new_file(path) as part:
        figure.savefig(part, dpi=dpi)


def subset_histogram(
    path: Path,
    labels: Sequence[str],
    true: Sequence[float],
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    title: str,
) -> None:
    """Draw frequencies of subsets as bars with error bars, and their true probabilities as lines.

    Parameters
    ----------
    path : Path
        The PNG file to write.
    labels : sequence of str
        Names of the subsets.
    true : sequence of float
        Their true probabilities.
    series : sequence of (name, frequencies, errors)
        One colour each.
    title : str
        Title of the figure.
    """
    width = 0.8 / max(1, len(series))
    with drawing(path, title, "subset", "probability", (max(7.0, 1.1 * len(labels)), 4.2)) as axes:
        for i, (name, heights, errors) in enumerate(series):
            centres = [x - 0.4 + width * (i + 0.5) for x in range(len(labels))]
            colour = COLOURS[i % len(COLOURS)]
            axes.bar(centres, heights, width * 0.92, yerr=errors, label=name, color=colour, ecolor="#333333", capsize=2)
        positions = range(len(labels))
        left, right = [x - 0.44 for x in positions], [x + 0.44 for x in positions]
        axes.hlines(true, left, right, color="black", linewidth=1.6, label="true p(S|w)")
        axes.set_xticks(positions, labels, rotation=0 if len(labels) <= 20 else 90)
        axes.legend(frameon=False)


def timing_lines(
    path: Path, candidates: Sequence[int], series: Sequence[tuple[str, Sequence[float]]], title: str
) -> None:
    """Draw seconds against the number of candidates, both on logarithmic axes.

    Series come in pairs of one colour, a dashed line and then a solid one.

    Parameters
    ----------
    path : Path
        The PNG file to write.
    candidates : sequence of int
        Numbers of candidates.
    series : sequence of (name, seconds)
        One line each.
    title : str
        Title of the figure.
    """
    from matplotlib.ticker import NullLocator

    with drawing(path, title, "candidates m", "seconds") as axes:
        for i, (name, seconds) in enumerate(series):
            colour, style = COLOURS[i // 2 % len(COLOURS)], ("--", "-")[i % 2]
            axes.plot(candidates, seconds, style, color=colour, marker="o", markersize=5, linewidth=1.8, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(candidates, [f"{m:,}" for m in candidates])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(axis="y", **GRID)
        axes.legend(frameon=False)
