"""Maps of points in the plane, coloured by label: a picture, and a page to look closer."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from khot.report.page import render

_COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#eeca3b", "#72b7b2", "#9d755d", "#ff9da6", "#79706e"),
    *("#1f5fa8", "#a85a00", "#1f7a33", "#a61c28", "#6a3d9a", "#b8a000", "#00797d", "#5c4033", "#d6336c", "#333333"),
)
_UNLABELLED = "#4c78a8"


def write_map(folder: Path, points: np.ndarray, labels: np.ndarray | None, title: str) -> list[Path]:
    """Write points (n, d) into points.npy, and of two dimensions a picture and a page; their paths."""
    paths = [folder / "points.npy"]
    np.save(paths[0], points)
    if points.shape[1] == 2:
        paths += [folder / "map.png", folder / "map.html"]
        scatter_picture(paths[1], points, labels, title)
        scatter_page(paths[2], points, labels, title)
    return paths


def scatter_picture(path: Path, points: np.ndarray, labels: np.ndarray | None, title: str) -> None:
    """Draw points (n, 2) as a PNG, with a legend if there are labels (n,)."""
    from matplotlib.figure import Figure

    classes, numbers = _classes(points, labels)
    figure = Figure(figsize=(8.4, 7.0), layout="constrained")
    axes = figure.subplots()
    size = float(np.clip(60_000 / max(1, len(points)), 1.0, 24.0))
    order = np.random.default_rng(0).permutation(len(points))  # so that no class lies on top
    colours = np.array(_colours(len(classes)))[numbers[order]]
    axes.scatter(*points[order].T, s=size, c=colours, linewidths=0, alpha=0.8)
    for name, colour in zip(classes, _colours(len(classes)), strict=True) if labels is not None else ():
        axes.scatter([], [], s=40, color=colour, label=_plain(name))
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(_plain(title), fontsize=10)
    axes.spines[:].set_visible(False)
    if labels is not None:
        columns = 1 + (len(classes) - 1) // 28
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9, ncols=columns)
    figure.savefig(path, dpi=150)


def scatter_page(path: Path, points: np.ndarray, labels: np.ndarray | None, title: str) -> None:
    """Write a page that needs no network: points (n, 2) to zoom into, with their labels (n,) and row numbers."""
    classes, numbers = _classes(points, labels)
    data = {
        "points": _packed(points, "<f4"),
        "labels": _packed(numbers, "<u4"),
        "classes": classes,
        "colours": _colours(len(classes)),
        "labelled": labels is not None,
    }
    path.write_text(render("map.html", title=title, data=data), encoding="utf-8")


def _classes(points: np.ndarray, labels: np.ndarray | None) -> tuple[list[str], np.ndarray]:
    """Names of the labels, and the number of the label of each point."""
    if labels is None:
        return ["points"], np.zeros(len(points), dtype=np.int64)
    if labels.dtype == object:  # missing ones do not compare with others
        labels = np.array(["" if label is None else str(label) for label in labels])
    classes, numbers = np.unique(labels, return_inverse=True)
    return [str(name) for name in classes], numbers


def _plain(text: str) -> str:
    """Not to be taken for a formula."""
    return text.replace("$", r"\$")


def _colours(count: int) -> Sequence[str]:
    """As many colours, which repeat after the first twenty."""
    return [_UNLABELLED] if count == 1 else [_COLOURS[i % len(_COLOURS)] for i in range(count)]


def _packed(values: Any, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
