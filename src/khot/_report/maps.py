"""Maps of points in the plane, coloured by label: a picture, and a page to look closer."""

import base64
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from khot._files import new_file, write_array, write_text
from khot._report.page import render

_COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#eeca3b", "#72b7b2", "#9d755d", "#ff9da6", "#79706e"),
    *("#1f5fa8", "#a85a00", "#1f7a33", "#a61c28", "#6a3d9a", "#b8a000", "#00797d", "#5c4033", "#d6336c", "#333333"),
)
_UNLABELLED = "#4c78a8"
_RANGES = 10  # of numbers that are too many to be classes
_MOST = 40  # numbers that may be classes
_LISTED = 28  # classes in the legend of a picture
_LONGEST = 28  # characters of a name in a picture


def write_map(
    folder: Path, points: np.ndarray, labels: np.ndarray | None, title: str, names: Sequence[str] | None = None
) -> list[Path]:
    """Write points (n, d) into points.npy, and of two dimensions a picture and a page; their paths."""
    paths = [folder / "points.npy"]
    write_array(paths[0], points)
    if points.shape[1] == 2:
        paths += [folder / "map.png", folder / "map.html"]
        scatter_picture(paths[1], points, labels, title)
        scatter_page(paths[2], points, labels, title, names)
    return paths


def scatter_picture(path: Path, points: np.ndarray, labels: np.ndarray | None, title: str) -> None:
    """Draw points (n, 2) as a PNG, with a legend if there are labels (n,)."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    groups = _groups(points, labels)
    figure = Figure(figsize=(8.4, 7.0), layout="constrained")
    axes = figure.subplots()
    size = float(np.clip(60_000 / max(1, len(points)), 1.0, 24.0))
    order = np.random.default_rng(0).permutation(len(points))  # so that no class lies on top
    colours = np.array(groups.colours)[groups.numbers[order]]
    axes.scatter(*points[order].T, s=size, c=colours, linewidths=0, alpha=0.8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(_plain(title), fontsize=10)
    axes.spines[:].set_visible(False)
    if labels is not None:
        listed = [
            Line2D([], [], linestyle="", marker="o", color=colour, label=_plain(_short(name)))
            for name, colour in list(zip(groups.names, groups.colours, strict=True))[:_LISTED]
        ]
        if len(groups.names) > _LISTED:
            others = f"... {len(groups.names) - _LISTED:,} others"
            listed.append(Line2D([], [], linestyle="", label=others))
        figure.legend(handles=listed, frameon=False, loc="outside right center", fontsize=9)
    with new_file(path) as part:
        figure.savefig(part, dpi=150)


def scatter_page(
    path: Path, points: np.ndarray, labels: np.ndarray | None, title: str, names: Sequence[str] | None = None
) -> None:
    """Write a page that needs no network: points (n, 2) to zoom into, with their labels (n,) and names or numbers."""
    groups = _groups(points, labels)
    data = {
        "points": _packed(points, "<f4"),
        "labels": _packed(groups.numbers, "<u4"),
        "classes": groups.names,
        "colours": groups.colours,
        "values": None if groups.values is None else _packed(groups.values, "<f8"),
        "labelled": labels is not None,
        "names": None if names is None else list(names),
    }
    write_text(path, render("map.html", title=title, data=data))


class _Groups(NamedTuple):
    """Points of the same colour: their names and colours, the group of each point, and its value if it is a number."""

    names: list[str]
    colours: list[str]
    numbers: np.ndarray
    values: np.ndarray | None = None


def _groups(points: np.ndarray, labels: np.ndarray | None) -> _Groups:
    """A group for each label, or for ranges of numbers if there are too many."""
    if labels is None:
        return _Groups(["points"], [_UNLABELLED], np.zeros(len(points), dtype=np.int64))
    if labels.dtype == object:  # missing ones do not compare with others
        labels = np.array(["" if label is None else str(label) for label in labels])
    classes, numbers = np.unique(labels, return_inverse=True)  # numbers by their size, texts by their letters
    values = _measured(labels) if len(classes) > _MOST else None
    if values is not None:
        return _ranges(values)
    names = [str(name) for name in classes]
    if labels.dtype.kind in "SU":
        order = sorted(range(len(names)), key=lambda i: _with_numbers(names[i]))
        names, numbers = [names[i] for i in order], np.argsort(order)[numbers]
    colours = [_UNLABELLED] if len(names) == 1 else [_COLOURS[i % len(_COLOURS)] for i in range(len(names))]
    return _Groups(names, colours, numbers)


def _with_numbers(name: str) -> list[tuple[int, float, str]]:
    """To sort by: the numbers in a name count by their size, so that class2 comes before class10.

    >>> sorted(["class10", "class2", "b"], key=_with_numbers)
    ['b', 'class2', 'class10']
    """
    parts = re.split("([0-9]+)", name)
    return [(0, float(part), part) if re.match("[0-9]", part) else (1, 0.0, part) for part in parts if part]


def _measured(labels: np.ndarray) -> np.ndarray | None:
    """The labels as numbers, if all are finite ones."""
    try:
        values = labels.astype(np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _ranges(values: np.ndarray) -> _Groups:
    """Ranges with about as many points each, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    edges = np.unique(np.quantile(values, np.linspace(0, 1, _RANGES + 1), method="nearest"))
    numbers = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
    shades = colormaps["viridis"](np.linspace(0, 0.95, len(names)))
    return _Groups(names, [to_hex(shade) for shade in shades], numbers, values)


def _short(name: str) -> str:
    """To stand in a legend, which would leave out what begins with an underscore."""
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
    return f" {name}" if name.startswith("_") else name


def _plain(text: str) -> str:
    """Not to be taken for a formula."""
    return text.replace("$", r"\$")


def _packed(values: Any, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
