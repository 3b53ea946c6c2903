"""Tables and points to files."""

import csv
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from khot._files import new_file, write_array
from khot.errors import DataFileError


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with new_file(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        plain, quoted = (
            csv.writer(file, lineterminator="\n", quoting=quoting) for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        for row in chain([header], rows):  # csv leaves a carriage return alone, which ends a line
            (quoted if any(isinstance(cell, str) and "\r" in cell for cell in row) else plain).writerow(row)


def check_points(path: Path, named: bool) -> None:
    """Refuse a file that points, or those with `named` rows, cannot be written to."""
    kind = path.suffix.lower()
    if kind not in (".npy", ".csv"):
        raise DataFileError(f"{path} must end in .npy or .csv: these are what points are written to")
    if kind == ".npy" and named:
        raise DataFileError(f"{path} must end in .csv: an NPY file of points has no place for the names of rows")


def write_points(
    path: Path, points: np.ndarray, columns: Sequence[str], rows: tuple[str, Sequence[str]] | None = None
) -> None:
    """Write points as NPY, or as CSV with the names of the columns, and of the rows as a first column with its name."""
    check_points(path, named=rows is not None)
    if path.suffix.lower() == ".npy":
        write_array(path, points)
    elif rows is None:
        write_csv(path, columns, points.tolist())
    else:
        head, names = rows
        write_csv(path, [head, *columns], ([name, *point] for name, point in zip(names, points.tolist(), strict=True)))
