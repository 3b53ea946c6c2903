"""Rows of numbers, or texts, from CSV, NPY, NPZ and Parquet files."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from khot._tables._arrays import read_arrays, read_arrow, read_columns, read_mapped
from khot._tables._cells import numbers_in
from khot._tables._lines import check_named, place_of, read_lines, without
from khot._tables.labelled import read_rows
from khot._tables.labels import check_labels, read_labels
from khot._tables.layout import by_name
from khot.errors import DataFileError


class Table(NamedTuple):
    """Rows of numbers, their labels, the names of their columns and of that of the labels, if there are any."""

    rows: np.ndarray
    labels: np.ndarray | None = None
    names: list[str] | None = None
    label: str | None = None


def read_matrix(
    path: Path,
    label: str | None = None,
    ignored: Collection[str] = (),
    columns: list[str] | None = None,
    **options: Any,
) -> Table:
    """Rows of numbers, and their labels if there are any: array y of an NPZ, or the column `label`.

    An NPY file is not read but mapped into memory. An NPZ file has arrays X and perhaps y. A CSV file may have a first
    line with names; Parquet needs pyarrow. Of the latter two, columns that are `ignored` are left out. If the names of
    the `columns` of the training are given, those of the file come in the same order, and ignored ones need not be
    there. `options` are the `hint` and `header` of `read_named`, for a CSV file without labels.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        if label is not None:
            message = f"{path} has no columns with names, and there is no file {label}: pass a file of labels"
            raise DataFileError(message)
        if ignored and columns is None:
            raise DataFileError(f"{path} has no columns with names such as {next(iter(ignored))!r}: ignore none")
        table = Table(*read_arrays(path)) if kind == ".npz" else Table(read_mapped(path))
        if table.rows.ndim > 2:
            raise DataFileError(
                f"{path} must have rows of numbers, but got shape {table.rows.shape}: reshape it to (rows, columns)"
            )
        check_labels(path, table.labels, len(table.rows))
        return table
    given = path, label, ignored, columns
    table = _parquet(*given) if kind == ".parquet" else _csv(*given, **options)
    if not columns or not table.names:
        return table
    return Table(table.rows[:, by_name(path, table.names, columns)], table.labels, columns)


def read_labelled(path: Path, labels: str | None, ignored: Collection[str] = ()) -> Table:
    """Rows of numbers with labels from a file of their own, or the column of that name; without, those of an NPZ."""
    if labels is None or not Path(labels).is_file():
        return read_matrix(path, labels, ignored)._replace(label=labels)
    table = read_matrix(path, None, ignored)
    return table._replace(labels=read_labels(Path(labels), len(table.rows)))


def read_named(
    path: Path,
    ignored: Collection[str] = (),
    needed: bool = False,
    known: Collection[str] = (),
    hint: str = "or encode them as numbers",
    header: bool | None = None,
) -> tuple[np.ndarray, list[str] | None]:
    """Rows of numbers of a CSV file without the `ignored` columns, which may be `needed`, and the others' names.

    A first line with all of the `known` names has names, or one of which `header` says so. `hint` says what else can be
    done with words than to leave them out.
    """
    names, lines = without(path, *read_lines(path, header, known=known), ignored, needed)
    check_named(path, names)
    return numbers_in(path, lines, names, "all columns", hint), names


def read_texts(path: Path, column: str) -> list[str]:
    """The texts in a column of a Parquet file, or of a CSV file with names in its first line.

    Of a CSV file with one column, empty lines are texts.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        raise DataFileError(f"{path} has no columns with names such as {column!r}: write a CSV or Parquet file")
    if kind == ".parquet":
        table = read_arrow(path)
        values = table.column(place_of(path, table.column_names, column)).to_pylist()
        return [_text(path, column, value) for value in values]
    names, lines = read_lines(path, header=True, empty=True)
    place = place_of(path, names, column)
    return [line[place] for line in lines]


def _text(path: Path, column: str, value: Any) -> str:
    """A cell of a Parquet file: a text, also one that was written as bytes, a number or a date."""
    if isinstance(value, list | dict):
        raise DataFileError(f"{path} must have texts in column {column!r}, but got {value!r}: join them to one text")
    try:
        return value.decode() if isinstance(value, bytes) else "" if value is None else str(value)
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path} has bytes in column {column!r} that are no text ({error}): decode them") from error


def _csv(path: Path, label: str | None, ignored: Collection[str], columns: list[str] | None, **options: Any) -> Table:
    if label is not None:
        rows, labels, layout = read_rows(path, label, ignored=ignored, needed=columns is None)
        return Table(rows, labels, layout.columns if layout else None)
    rows, names = read_named(path, ignored, needed=columns is None, known=columns or (), **options)
    return Table(rows, None, names)


def _parquet(path: Path, label: str | None, ignored: Collection[str], columns: list[str] | None) -> Table:
    found = read_columns(path)
    for name in ignored:
        if columns is None:
            place_of(path, list(found), name)
        found.pop(name, None)
    labels = None if label is None else found.pop(list(found)[place_of(path, list(found), label)])
    words = [name for name, values in found.items() if values.dtype.kind not in "biuf"]
    if words or not found:
        got = f"{words[0]!r} of other things" if words else "none at all"
        raise DataFileError(f"{path} must have columns of numbers, but got {got}: encode or leave out such columns")
    return Table(np.column_stack(list(found.values())), labels, list(found))
