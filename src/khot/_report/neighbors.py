"""Figures of neighbour classifiers: the images that voted, and the accuracy during training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from khot._report.figures import GRID, drawing

RIGHT, WRONG = "#2e7d32", "#c62828"

_ROW, _COLUMN = 1.36, 1.07  # distance from one image to the next


def neighbor_rows(
    path: Path,
    queries: np.ndarray,
    predictions: np.ndarray,
    labels: np.ndarray,
    neighbors: np.ndarray,
    neighbor_labels: np.ndarray,
    title: str,
) -> None:
    """Draw query images, each with its neighbours to its right.

    A neighbour with the label of the query has a green frame, any other a red one. Labels are below the images.

    Parameters
    ----------
    path : Path
        The PNG file to write.
    queries : ndarray, shape (q, h, w) or (q, h, w, 3)
        Images.
    predictions, labels : ndarray, shape (q,)
        Predicted and true labels of the queries.
    neighbors : ndarray, shape (q, k, h, w) or (q, k, h, w, 3)
        Images.
    neighbor_labels : ndarray, shape (q, k)
        Labels of the neighbours.
    title : str
        Title of the figure.
    """
    rows, k = neighbors.shape[:2]
    wide, high = 1.65 + _COLUMN * k, _ROW * rows
    with drawing(path, title, size=(0.85 * wide, 0.85 * high + 0.3), dpi=130) as axes:
        for i in range(rows):
            right, top = predictions[i] == labels[i], _ROW * i
            label = labels[i] if right else f"{labels[i]}, taken\nfor {predictions[i]}"
            _image(axes, queries[i], 0.0, top, label, "#000000" if right else WRONG)
            for j in range(k):
                agrees = neighbor_labels[i, j] == labels[i]
                _image(axes, neighbors[i, j], 1.4 + _COLUMN * j, top, neighbor_labels[i, j], RIGHT if agrees else WRONG)
        axes.set_xlim(-0.25, wide - 0.25)
        axes.set_ylim(high, -0.05)
        axes.set_aspect("equal")
        axes.set_axis_off()


def accuracy_curves(path: Path, series: Sequence[tuple[str, Sequence[float]]], title: str) -> None:
    """Draw held-out accuracies in percent after every epoch, one line for each series (name, percents)."""
    from matplotlib.ticker import MaxNLocator

    best = max(max(percents) for _, percents in series)
    lowest = min(np.median(percents) for _, percents in series)
    spread = best - lowest
    with drawing(path, title, "epoch", "held-out accuracy, %") as axes:
        for name, percents in series:
            axes.plot(range(1, len(percents) + 1), percents, marker="o", markersize=3, linewidth=1.6, label=name)
        axes.set_ylim(lowest - spread, best + 0.1 * spread + 0.1)  # lower values would squeeze the lines
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", **GRID)
        axes.legend(frameon=False, loc="lower right")


def _image(axes: Any, pixels: np.ndarray, left: float, top: float, label: str, colour: str) -> None:
    """Draw an image of width and height 1 in a coloured frame, with its label below."""
    from matplotlib.patches import Rectangle

    colours = "gray_r" if pixels.ndim == 2 else None
    axes.imshow(pixels, cmap=colours, vmin=0, extent=(left, left + 1, top + 1, top), interpolation="nearest")
    axes.add_patch(Rectangle((left, top), 1, 1, fill=False, edgecolor=colour, linewidth=2.2))
    axes.text(left + 0.5, top + 1.03, label, fontsize=7, color=colour, ha="center", va="top")
