"""Maps of points in the plane, coloured by label: a PNG picture, and an HTML page to zoom into."""

import base64
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from khot._files import write_array, write_text
from khot._report.figures import COLOURS, drawing
from khot._report.page import render

_DARK = ("#1f5fa8", "#a85a00", "#1f7a33", "#a61c28", "#6a3d9a", "#b8a000", "#00797d", "#5c4033", "#d6336c", "#333333")
_CLASS_COLOURS = COLOURS + _DARK
_MAX_CLASSES = 40  # different numbers that are still shown as classes
_RANGES = 10  # into which more numbers than that are divided
_MAX_LISTED = 28  # classes in the legend of a picture
_MAX_CHARACTERS = 28  # of a name in a picture


def write_map(
    folder: Path, points: np.ndarray, labels: np.ndarray | None, title: str, names: Sequence[str] | None = None
) -> list[Path]:
    """Write points (n, d) to points.npy and, if d is 2, to map.png and map.html; return the paths."""
    paths = [folder / "points.npy"]
    write_array(paths[0], points)
    if points.shape[1] == 2:
        paths += [folder / "map.png", folder / "map.html"]
        scatter_picture(paths[1], points, labels, title)
        scatter_page(paths[2], points, labels, title, names)
    return paths


def scatter_picture(path: Path, points: np.ndarray, labels: np.ndarray | None, title: str) -> None:
    """Draw points (n, 2) as a PNG picture, with a legend if there are labels (n,)."""
    from matplotlib.lines import Line2D

    groups = _groups(points, labels)
    size = float(np.clip(60_000 / max(1, len(points)), 1.0, 24.0))
    order = np.random.default_rng(0).permutation(len(points))  # no class covers the others
    colours = np.array(groups.colours)[groups.numbers[order]]
    with drawing(path, _plain(title), size=(8.4, 7.0)) as axes:
        axes.scatter(*points[order].T, s=size, c=colours, linewidths=0, alpha=0.8)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        if labels is not None:
            listed = [
                Line2D([], [], linestyle="", marker="o", color=colour, label=_plain(_short(name)))
                for name, colour in list(zip(groups.names, groups.colours, strict=True))[:_MAX_LISTED]
            ]
            if len(groups.names) > _MAX_LISTED:
                others = f"... {len(groups.names) - _MAX_LISTED:,} others"
                listed.append(Line2D([], [], linestyle="", label=others))
            axes.figure.legend(handles=listed, frameon=False, loc="outside right center", fontsize=9)


def scatter_page(
    path: Path, points: np.ndarray, labels: np.ndarray | None, title: str, names: Sequence[str] | None = None
) -> None:
    """Write an HTML page with points (n, 2) to zoom into; the pointer shows the label and the name of a point.

    Without `names`, the name of a point is its number. The page works without a network.
    """
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
    """Groups of points that share a colour."""

    names: list[str]
    colours: list[str]
    numbers: np.ndarray  # the group of each point
    values: np.ndarray | None = None  # the label of each point, if the groups are ranges of numbers


def _groups(points: np.ndarray, labels: np.ndarray | None) -> _Groups:
    """One group for each label, or for each range if the labels are too many different numbers."""
    if labels is None:
        return _Groups(["points"], [COLOURS[0]], np.zeros(len(points), dtype=np.int64))
    if labels.dtype == object:  # missing labels cannot be sorted with others
        labels = np.array(["" if label is None else str(label) for label in labels])
    classes, numbers = np.unique(labels, return_inverse=True)  # sorts numbers by size, texts by letters
    values = _finite_numbers(labels) if len(classes) > _MAX_CLASSES else None
    if values is not None:
        return _ranges(values)
    names = [str(name) for name in classes]
    if labels.dtype.kind in "SU":
        order = sorted(range(len(names)), key=lambda i: _natural_order(names[i]))
        names, numbers = [names[i] for i in order], np.argsort(order)[numbers]
    colours = [_CLASS_COLOURS[i % len(_CLASS_COLOURS)] for i in range(len(names))]
    return _Groups(names, colours, numbers)


def _natural_order(name: str) -> list[tuple[int, float, str]]:
    """Sort key that compares the numbers in a name by size: class2 comes before class10.

    >>> sorted(["class10", "class2", "b"], key=_natural_order)
    ['b', 'class2', 'class10']
    """
    parts = re.split("([0-9]+)", name)
    return [(0, float(part), part) if re.match("[0-9]", part) else (1, 0.0, part) for part in parts if part]


def _finite_numbers(labels: np.ndarray) -> np.ndarray | None:
    """The labels as numbers if all of them are finite numbers, otherwise None."""
    try:
        values = labels.astype(np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _ranges(values: np.ndarray) -> _Groups:
    """Ranges with about equal numbers of points, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    edges = np.unique(np.quantile(values, np.linspace(0, 1, _RANGES + 1), method="nearest"))
    numbers = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
    shades = colormaps["viridis"](np.linspace(0, 0.95, len(names)))
    return _Groups(names, [to_hex(shade) for shade in shades], numbers, values)


def _short(name: str) -> str:
    """Shorten a name for a legend. matplotlib leaves out names that begin with an underscore, so those get a space."""
    name = name if len(name) <= _MAX_CHARACTERS else name[: _MAX_CHARACTERS - 3] + "..."
    return f" {name}" if name.startswith("_") else name


def _plain(text: str) -> str:
    """Escape dollar signs, between which matplotlib would set a formula."""
    return text.replace("$", r"\$")


def _packed(values: Any, dtype: str) -> str:
    """Bytes of an array in base64, for the script of the page."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
