"""CSV files, and points as CSV or NPY."""

import csv
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from khot._files import new_file, write_array
from khot.errors import DataFileError


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, row by row."""
    with new_file(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        plain, quoted = (
            csv.writer(file, lineterminator="\n", quoting=quoting) for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        for row in chain([header], rows):  # csv does not quote a carriage return, which readers take for a line's end
            (quoted if any(isinstance(cell, str) and "\r" in cell for cell in row) else plain).writerow(row)


def check_points(path: Path, named: bool) -> None:
    """Refuse a path to which `write_points` cannot write points, or points with names if `named`."""
    kind = path.suffix.lower()
    if kind not in (".npy", ".csv"):
        raise DataFileError(f"{path} must end in .npy or .csv, the formats of points: choose one of them")
    if kind == ".npy" and named:
        raise DataFileError(f"{path} must end in .csv: an NPY file of points cannot hold the names of rows")


def write_points(
    path: Path, points: np.ndarray, columns: Sequence[str], names: tuple[str, Sequence[str]] | None = None
) -> None:
    """Write points (n, d) as NPY or CSV.

    A CSV file has the names of the `columns` in its first line. `names`, if given, are the heading and the entries of
    one more column, which is the first.
    """
    check_points(path, named=names is not None)
    if path.suffix.lower() == ".npy":
        write_array(path, points)
    elif names is None:
        write_csv(path, columns, points.tolist())
    else:
        heading, entries = names
        rows = ([name, *point] for name, point in zip(entries, points.tolist(), strict=True))
        write_csv(path, [heading, *columns], rows)
