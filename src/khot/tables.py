"""Rows with labels from CSV and NPZ files, and predictions and evidence to CSV."""

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


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


def _arrays(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataFileError(
            f"{path} cannot be read as NPZ ({error}): save it with np.savez, without objects"
        ) from error
    if "X" not in arrays:
        raise DataFileError(
            f"{path} has arrays {sorted(arrays)}, but not X: save it with np.savez(path, X=rows, y=labels)"
        )
    return arrays["X"], arrays.get("y")


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
        raise DataFileError(f"{path} has {got}, but no label column {label!r}: name another with --label")
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
