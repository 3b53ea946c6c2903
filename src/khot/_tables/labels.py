"""Labels in a file of their own."""

from pathlib import Path

import numpy as np

from khot._tables._arrays import read_arrays, read_columns, read_mapped
from khot._tables._cells import is_number, labels_in
from khot._tables._lines import read_lines
from khot.errors import DataFileError


def read_labels(path: Path, rows: int) -> np.ndarray:
    """Labels of so many rows: an NPY file, array y of an NPZ, or the only column of a CSV or Parquet file."""
    labels = _read(path, rows)
    check_labels(path, labels, rows)
    return labels


def check_labels(path: Path, labels: np.ndarray | None, rows: int) -> None:
    """Refuse labels that are not one number or text for each row."""
    if labels is not None and labels.dtype.kind == "V":
        raise DataFileError(f"{path} must have numbers or texts as labels, but got {labels.dtype}: save one column")
    if labels is not None and labels.shape != (rows,):
        raise DataFileError(
            f"{path} must have one label for each of {rows} rows, but has shape {labels.shape}: give every row one"
        )


def _read(path: Path, rows: int) -> np.ndarray:
    kind = path.suffix.lower()
    if kind == ".npz":
        return read_arrays(path, "y")[0]
    if kind == ".npy":
        return np.asarray(read_mapped(path))
    if kind == ".parquet":
        columns = list(read_columns(path).values())
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    names, lines = read_lines(path, empty=True)
    if len(lines[0]) > 1:
        return np.array(lines)
    cells = [line[0].strip() for line in lines]
    if names and len(cells) == rows - 1 and not any(map(is_number, cells)):  # all are words, and the first is no name
        cells = [*names, *cells]
    while len(cells) > rows and not cells[-1]:
        cells.pop()
    if "" in cells:
        raise DataFileError(f"{path} has no label in row {cells.index('') + 1}: give every row one")
    return labels_in(cells)
