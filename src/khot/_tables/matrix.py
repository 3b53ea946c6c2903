"""Rows of numbers, or texts, from CSV, NPY, NPZ and Parquet files."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from khot._tables._arrays import read_arrays, read_arrow, read_columns, read_mapped
from khot._tables._cells import parse_numbers
from khot._tables._lines import check_all_named, check_ignored, column_index, drop_columns, read_lines
from khot._tables.labelled import read_rows
from khot._tables.labels import check_labels, read_labels
from khot._tables.layout import order_of_columns
from khot.errors import DataFileError

_HINT = "or encode them as numbers"


class Table(NamedTuple):
    """Rows of numbers, with their labels and the names of columns and label where the file has them."""

    rows: np.ndarray
    labels: np.ndarray | None = None
    names: list[str] | None = None
    label: str | None = None


def read_matrix(
    path: Path,
    label: str | None = None,
    ignored: Collection[str] = (),
    columns: list[str] | None = None,
    hint: str = _HINT,
    header: bool | None = None,
) -> Table:
    """Read rows of numbers, and their labels if there are any.

    Parameters
    ----------
    path : Path
        An NPY file, which is mapped into memory and not read; an NPZ file with an array X and perhaps y; a CSV file; or
        a Parquet file, which needs pyarrow.
    label : str, optional
        Name of the label column of a CSV or Parquet file.
    ignored : collection of str
        Names of columns of a CSV or Parquet file to leave out. They must exist, unless `columns` are given.
    columns : list of str, optional
        Names of the columns of the training file: those of this file are put into the same order.
    hint, header
        For a file without labels, see `read_named`.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        return _array_file(path, kind, label, ignored if columns is None else ())
    if kind == ".parquet":
        table = _parquet(path, label, ignored, columns, hint)
    elif label is not None:
        rows, labels, layout = read_rows(path, label, ignored=ignored, required=columns is None)
        table = Table(rows, labels, layout.columns if layout else None)
    else:
        rows, names = read_named(path, ignored, columns is None, columns or (), hint, header)
        table = Table(rows, None, names)
    if not columns or not table.names:
        return table
    return Table(table.rows[:, order_of_columns(path, table.names, columns)], table.labels, columns)


def read_labelled(path: Path, labels: str | None, ignored: Collection[str] = ()) -> Table:
    """Read rows of numbers with labels from another file, or from the column of that name; by default y of an NPZ."""
    if labels is None or not Path(labels).is_file():
        return read_matrix(path, labels, ignored)._replace(label=labels)
    table = read_matrix(path, None, ignored)
    return table._replace(labels=read_labels(Path(labels), len(table.rows)))


def read_named(
    path: Path,
    ignored: Collection[str] = (),
    required: bool = False,
    columns: Sequence[str] = (),
    hint: str = _HINT,
    header: bool | None = None,
) -> tuple[np.ndarray, list[str] | None]:
    """Read rows of numbers of a CSV file without labels, and the names of their columns.

    Parameters
    ----------
    path : Path
        The file.
    ignored : collection of str
        Names of columns to leave out.
    required : bool
        Whether all ignored columns must exist.
    columns : sequence of str
        Names of the columns of the training file: a file with other names is refused.
    hint : str
        What to do with columns of words other than leave them out.
    header : bool, optional
        Whether the first line has names; by default see `read_lines`.
    """
    names, lines = drop_columns(path, *read_lines(path, header, known=columns), ignored, required)
    check_all_named(path, names)
    if names and columns:
        order_of_columns(path, names, columns)
    return parse_numbers(path, lines, names, "all columns", hint), names


def read_texts(path: Path, column: str) -> list[str]:
    """Read a column of texts from a Parquet file, or from a CSV file with names in its first line.

    Empty lines of a CSV file with only one column are empty texts.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        raise DataFileError(f"{path} has no columns with names such as {column!r}: write a CSV or Parquet file")
    if kind == ".parquet":
        table = read_arrow(path)
        values = table.column(column_index(path, table.column_names, column)).to_pylist()
        return [_text(path, column, value) for value in values]
    names, lines = read_lines(path, header=True, keep_empty=True)
    index = column_index(path, names, column)
    return [line[index] for line in lines]


def _text(path: Path, column: str, value: Any) -> str:
    """A cell of a Parquet file as text; it may be written as bytes, a number or a date."""
    if isinstance(value, list | dict):
        raise DataFileError(f"{path} must have texts in column {column!r}, but got {value!r}: join them to one text")
    try:
        return value.decode() if isinstance(value, bytes) else "" if value is None else str(value)
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{path} has bytes in column {column!r} that are no text ({error}): write them as UTF-8 text"
        ) from error


def _array_file(path: Path, kind: str, label: str | None, ignored: Collection[str]) -> Table:
    if label is not None:
        raise DataFileError(
            f"{path} has no columns with names, and there is no file {label}: pass a file of labels that exists"
        )
    if ignored:
        raise DataFileError(
            f"{path} has no columns with names such as {next(iter(ignored))!r}: do not ignore columns of an array"
        )
    table = Table(*read_arrays(path)) if kind == ".npz" else Table(read_mapped(path))
    if table.rows.ndim > 2:
        raise DataFileError(
            f"{path} must have rows of numbers, but got shape {table.rows.shape}: reshape it to (rows, columns)"
        )
    check_labels(path, table.labels, len(table.rows))
    return table


def _parquet(path: Path, label: str | None, ignored: Collection[str], columns: list[str] | None, hint: str) -> Table:
    found = read_columns(path)
    if columns is None:
        check_ignored(path, list(found), ignored)
    found = {name: values for name, values in found.items() if name not in ignored}
    labels = None if label is None else found.pop(list(found)[column_index(path, list(found), label)])
    if not found:
        raise DataFileError(f"{path} must have columns of numbers, but got none: ignore fewer of them, or write some")
    if columns:
        order_of_columns(path, list(found), columns)
    others = [repr(name) for name, values in found.items() if values.dtype.kind not in "biuf"]
    if others:
        raise DataFileError(
            f"{path} must have numbers in all columns{' but the label' if label else ''}, but got something else in "
            f"{', '.join(others)}: leave out such columns (--ignore), {hint}"
        )
    return Table(np.column_stack(list(found.values())), labels, list(found))
