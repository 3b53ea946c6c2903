"""Rows with labels from CSV and NPZ files, to learn from and to predict."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from khot._tables._arrays import read_arrays
from khot._tables._cells import labels_in, numbers_in
from khot._tables._lines import check_named, place_of, read_lines, without
from khot._tables.layout import Layout, by_name
from khot.errors import DataFileError


def read_rows(
    path: Path,
    label: str | None = None,
    header: bool | None = None,
    ignored: Collection[str] = (),
    needed: bool = True,
) -> tuple[np.ndarray, np.ndarray, Layout | None]:
    """Rows, labels and layout of a CSV file whose last column, or column `label`, is the label; or X and y of an NPZ.

    The first line has names if `header` says so; by default if none of its cells is a number, or if one is a word where
    all other lines have numbers. Commas separate the columns, of which some are `ignored`, and may be `needed`.
    """
    if _is_npz(path):
        X, y = read_arrays(path)  # noqa: N806
        if y is None:
            raise DataFileError(f"{path} has no array y: save it with np.savez(path, X=rows, y=labels)")
        if label is not None or ignored:
            name = next(iter(ignored), label)
            raise DataFileError(f"{path} has no columns with names such as {name!r}: it has the arrays X and y")
        return X, y, None
    names, lines = without(path, *read_lines(path, header), ignored, needed)
    place = place_of(path, names, label) % len(lines[0])
    if len(lines[0]) == 1:
        raise DataFileError(f"{path} has only one column: it needs numbers and a label, with commas between them")
    check_named(path, names)
    columns = names[:place] + names[place + 1 :] if names else None
    rows = numbers_in(path, [line[:place] + line[place + 1 :] for line in lines], columns)
    for number, line in enumerate(lines, 1):
        if not line[place].strip():
            raise DataFileError(f"{path} has no label in row {number}: fill it in, or leave out the row")
    labels = labels_in([line[place] for line in lines])
    return rows, labels, Layout(columns, names[place] if names else None, place, list(ignored))


def read_queries(
    path: Path, columns: int, layout: Layout | None, label: str | None = None, header: bool | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows to predict, and their labels if the file has them.

    The columns of a CSV file go by their names, if both this file and that of the `layout` have names, or else by their
    order; then there are labels, at the same place, if it has one column more than needed.
    """
    if _is_npz(path):
        X, y = read_arrays(path)  # noqa: N806
        if y is not None and y.shape != (len(X),):
            raise DataFileError(f"{path} has {len(X)} rows X, but labels y of shape {y.shape}: give every row one")
        return X, y
    known = {*(layout.columns or [])} if layout else set()
    names, lines = without(path, *read_lines(path, header, known=known), layout.ignored if layout else ())
    if names is not None and label is not None:
        place_of(path, names, label)
    if layout is None or layout.columns is None or names is None:
        labelled = label is not None or len(lines[0]) == columns + 1
        place = (layout.place if layout else len(lines[0]) - 1) if label is None else place_of(path, names, label)
        order = [i for i in range(len(lines[0])) if not (labelled and i == place)]
    else:
        label = layout.label if label is None else label
        labelled, place = label in names, names.index(label) if label in names else -1
        order = by_name(path, names, layout.columns, label)
    rows = numbers_in(path, [[line[i] for i in order] for line in lines], [names[i] for i in order] if names else None)
    return rows, labels_in([line[place] for line in lines]) if labelled else None


def _is_npz(path: Path) -> bool:
    """Whether a file is NPZ rather than CSV; others are refused."""
    kind = path.suffix.lower()
    if kind in (".npy", ".parquet"):
        raise DataFileError(f"{path} must be a CSV or NPZ file: np.savez(path, X=rows, y=labels) writes one")
    return kind == ".npz"
