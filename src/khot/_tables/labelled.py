"""Rows with labels from CSV and NPZ files, for training and for prediction."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from khot._tables._arrays import read_arrays
from khot._tables._cells import parse_labels, parse_numbers
from khot._tables._lines import check_all_named, column_index, drop_columns, read_lines
from khot._tables.layout import Layout, order_of_columns
from khot.errors import DataFileError


def read_rows(
    path: Path,
    label: str | None = None,
    header: bool | None = None,
    ignored: Collection[str] = (),
    required: bool = True,
) -> tuple[np.ndarray, np.ndarray, Layout | None]:
    """Read rows and labels to train on: a CSV file, or the arrays X and y of an NPZ file.

    Parameters
    ----------
    path : Path
        The file.
    label : str, optional
        Name of the label column of a CSV file; by default it is the last one.
    header : bool, optional
        Whether the first line of a CSV file has names; by default see `read_lines`.
    ignored : collection of str
        Names of columns to leave out.
    required : bool
        Whether all ignored columns must exist.

    Returns
    -------
    rows : ndarray, shape (n, ...)
        Numbers; of a CSV file, finite ones of shape (n, columns).
    labels : ndarray, shape (n,)
        Whole numbers or texts.
    layout : Layout or None
        The columns of a CSV file; None for an NPZ file.
    """
    if _is_npz(path):
        X, y = read_arrays(path)  # noqa: N806
        if y is None:
            raise DataFileError(f"{path} has no array y: save it with np.savez(path, X=rows, y=labels)")
        if label is not None or ignored:
            name = next(iter(ignored), label)
            raise DataFileError(
                f"{path} has no column {name!r}, because it has the arrays X and y: do not name columns of an NPZ file"
            )
        return X, y, None
    names, lines = drop_columns(path, *read_lines(path, header), ignored, required)
    place = column_index(path, names, label) % len(lines[0])
    if len(lines[0]) == 1:
        raise DataFileError(f"{path} has only one column, but needs numbers and a label: separate columns by commas")
    check_all_named(path, names)
    columns = names[:place] + names[place + 1 :] if names else None
    rows = parse_numbers(path, [line[:place] + line[place + 1 :] for line in lines], columns)
    for number, line in enumerate(lines, 1):
        if not line[place].strip():
            raise DataFileError(f"{path} has no label in row {number}: fill it in, or leave out the row")
    labels = parse_labels([line[place] for line in lines])
    return rows, labels, Layout(columns, names[place] if names else None, place, list(ignored))


def read_queries(
    path: Path,
    columns: int,
    layout: Layout | None,
    label: str | None = None,
    header: bool | None = None,
    ignored: Collection[str] = (),
) -> tuple[np.ndarray, np.ndarray | None]:
    """Read rows to predict, and their labels if the file has them.

    The columns of a CSV file are matched by name if this file and the training file both have names, and otherwise by
    their order. Matched by order, a file has labels if it has one column more than needed; they are where they were in
    the training file.

    Parameters
    ----------
    path : Path
        A CSV file, or an NPZ file with an array X and perhaps y.
    columns : int
        Number of columns with which the model was trained.
    layout : Layout or None
        The columns of the training file.
    label : str, optional
        Name of the label column; by default that of the layout.
    header : bool, optional
        Whether the first line of a CSV file has names; by default see `read_lines`.
    ignored : collection of str
        Names of columns to leave out where they exist, in addition to those of the layout.

    Returns
    -------
    rows : ndarray, shape (n, ...)
    labels : ndarray of shape (n,), or None
    """
    if _is_npz(path):
        X, y = read_arrays(path)  # noqa: N806
        if y is not None and y.shape != (len(X),):
            raise DataFileError(
                f"{path} has {len(X)} rows X, but labels y of shape {y.shape}: save one label for each row"
            )
        return X, y
    known = {*(layout.columns or [])} if layout else set()
    left_out = {*ignored, *(layout.ignored if layout else ())}
    names, lines = drop_columns(path, *read_lines(path, header, known=known), left_out)
    if names is not None and label is not None:
        column_index(path, names, label)
    if layout is None or layout.columns is None or names is None:
        labelled = label is not None or len(lines[0]) == columns + 1
        place = (layout.place if layout else len(lines[0]) - 1) if label is None else column_index(path, names, label)
        order = [i for i in range(len(lines[0])) if not (labelled and i == place)]
    else:
        label = layout.label if label is None else label
        labelled, place = label in names, names.index(label) if label in names else -1
        order = order_of_columns(path, names, layout.columns, label)
    chosen = [names[i] for i in order] if names else None
    rows = parse_numbers(path, [[line[i] for i in order] for line in lines], chosen)
    return rows, parse_labels([line[place] for line in lines]) if labelled else None


def _is_npz(path: Path) -> bool:
    """Whether a file is NPZ and not CSV; other formats are refused."""
    kind = path.suffix.lower()
    if kind in (".npy", ".parquet"):
        raise DataFileError(f"{path} must be a CSV or NPZ file: np.savez(path, X=rows, y=labels) writes one")
    return kind == ".npz"
