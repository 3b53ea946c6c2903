"""Rows and labels from CSV, NPY, NPZ and Parquet files, and tables to CSV."""

import csv
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from khot.errors import DataFileError


def read_rows(path: Path, label: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a file: arrays X and y of an NPZ, or a CSV whose last column, or column `label`, is the label.

    A CSV may have a first line with names; commas separate its columns.
    """
    if path.suffix.lower() == ".npz":
        X, y = _arrays(path)  # noqa: N806
        if y is None:
            raise DataFileError(f"{path} has no array y: save it with np.savez(path, X=rows, y=labels)")
        return X, y
    names, lines = _lines(path)
    place = _place(path, names, label) % len(lines[0])
    cells = [line[place] for line in lines]
    return _numbers(path, [line[:place] + line[place + 1 :] for line in lines]), _labels(cells)


def read_queries(path: Path, columns: int, label: str | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows to predict, and their labels if the file has them: a CSV does if it has one column more than needed."""
    if path.suffix.lower() == ".npz":
        return _arrays(path)
    _, lines = _lines(path)
    if label is not None or len(lines[0]) == columns + 1:
        return read_rows(path, label)
    return _numbers(path, lines), None


def read_matrix(path: Path, label: str | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of numbers, and their labels if there are any: array y of an NPZ, or the column `label`.

    An NPY file is not read but mapped into memory. An NPZ file has arrays X and perhaps y. A CSV file may have a first
    line with names; Parquet needs pyarrow.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz") and label is not None:
        raise DataFileError(f"{path} has no columns with names, and there is no file {label}: pass a file of labels")
    if kind == ".npz":
        return _arrays(path)
    if kind == ".npy":
        return _mapped(path), None
    if kind == ".parquet":
        return _parquet(path, label)
    if label is not None:
        return read_rows(path, label)
    return _numbers(path, _lines(path)[1]), None


def read_labelled(path: Path, labels: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of numbers with labels from a file of their own, or the column of that name; without, those of an NPZ."""
    if labels is None or not Path(labels).is_file():
        return read_matrix(path, labels)
    rows = read_matrix(path)[0]
    return rows, read_labels(Path(labels), len(rows))


def read_labels(path: Path, rows: int) -> np.ndarray:
    """Labels of so many rows: an NPY file, array y of an NPZ, or the only column of a CSV or Parquet file."""
    labels = _labels_in(path, rows)
    if labels.shape != (rows,):
        raise DataFileError(
            f"{path} must have one label for each of {rows} rows, but has shape {labels.shape}: leave out the rest"
        )
    return labels


def _labels_in(path: Path, rows: int) -> np.ndarray:
    kind = path.suffix.lower()
    if kind == ".npz":
        return _arrays(path, "y")[0]
    if kind == ".npy":
        return np.asarray(_mapped(path))
    if kind == ".parquet":
        columns = list(_columns(path).values())
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    names, lines = _lines(path)
    if names and len(lines) == rows - 1:  # all are words, and the first is no name
        lines = [names, *lines]
    return _labels([line[0] for line in lines]) if len(lines[0]) == 1 else np.array(lines)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


def write_points(path: Path, points: np.ndarray, names: Sequence[str]) -> None:
    """Write rows as NPY, or as CSV with the names of the columns."""
    kind = path.suffix.lower()
    if kind not in (".npy", ".csv"):
        raise DataFileError(f"{path} must end in .npy or .csv: these are what points are written to")
    if kind == ".npy":
        np.save(path, points)
    else:
        write_csv(path, names, points.tolist())


def _arrays(path: Path, needed: str = "X") -> tuple[np.ndarray, np.ndarray | None]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataFileError(
            f"{path} cannot be read as NPZ ({error}): save it with np.savez, without objects"
        ) from error
    if needed not in arrays:
        raise DataFileError(
            f"{path} has arrays {sorted(arrays)}, but not {needed}: save it with np.savez(path, X=rows, y=labels)"
        )
    return arrays[needed], arrays.get("y")


def _mapped(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataFileError(f"{path} cannot be read as NPY ({error}): save it with np.save, without objects") from error


def _columns(path: Path) -> dict[str, np.ndarray]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataFileError(f"{path} needs pyarrow to be read: pip install 'khot[parquet]'") from error
    try:
        table = parquet.read_table(path)
    except ArrowException as error:
        raise DataFileError(f"{path} cannot be read as Parquet ({error}): write it anew") from error
    return {name: table[name].to_numpy() for name in table.column_names}


def _parquet(path: Path, label: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    columns = _columns(path)
    labels = None if label is None else columns.pop(list(columns)[_place(path, list(columns), label)])
    words = [name for name, values in columns.items() if values.dtype.kind not in "biuf"]
    if words or not columns:
        got = f"{words[0]!r} of other things" if words else "none at all"
        raise DataFileError(f"{path} must have columns of numbers, but got {got}: encode or drop such columns")
    return np.column_stack(list(columns.values())), labels


def _lines(path: Path) -> tuple[list[str] | None, list[list[str]]]:
    """The names of the columns, if the first line has them, and the other lines."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(f"{path} cannot be read as CSV ({error}): save it as UTF-8 text with commas") from error
    names = lines.pop(0) if lines and not any(_is_number(cell) for cell in lines[0]) else None
    if not lines:
        raise DataFileError(f"{path} has no rows: it needs numbers, one row a line, and labels")
    for number, line in enumerate(lines, start=1 if names is None else 2):
        if len(line) != len(names or lines[0]):
            raise DataFileError(
                f"{path} has {len(names or lines[0])} columns in its first line and {len(line)} in line {number}: "
                "give all lines as many"
            )
    return names, lines


def _place(path: Path, names: list[str] | None, label: str | None) -> int:
    if label is None:
        return -1
    if names is None or label not in names:
        got = f"columns {', '.join(names)}" if names else "no names in its first line"
        raise DataFileError(f"{path} has {got}, but no label column {label!r}: name another")
    return names.index(label)


def _numbers(path: Path, lines: list[list[str]]) -> np.ndarray:
    try:
        return np.array(lines, dtype=np.float64)
    except ValueError:
        bad = next((row, cell) for row, line in enumerate(lines, 1) for cell in line if not _is_number(cell))
        raise DataFileError(
            f"{path} must have numbers in all columns but the label, but got {bad[1]!r} in row {bad[0]}: "
            "encode or drop such columns"
        ) from None


def _labels(cells: list[str]) -> np.ndarray:
    """Whole numbers if all are, texts otherwise."""
    try:
        return np.array([int(cell) for cell in cells])
    except ValueError:
        return np.array(cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
