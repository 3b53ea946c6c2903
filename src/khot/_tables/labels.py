"""Labels in a file of their own."""

from pathlib import Path

import numpy as np

from khot._tables._arrays import read_arrays, read_columns, read_mapped
from khot._tables._cells import is_number, parse_labels
from khot._tables._lines import read_lines
from khot.errors import DataFileError


def read_labels(path: Path, n: int) -> np.ndarray:
    """Read the labels of n rows: an NPY file, the array y of an NPZ, or the only column of a CSV or Parquet file."""
    labels = _read(path, n)
    check_labels(path, labels, n)
    return labels


def check_labels(path: Path, labels: np.ndarray | None, n: int) -> None:
    """Refuse labels unless they are one number or text for each of n rows."""
    if labels is not None and labels.dtype.kind == "V":
        raise DataFileError(f"{path} must have numbers or texts as labels, but got {labels.dtype}: save one column")
    if labels is not None and labels.shape != (n,):
        raise DataFileError(
            f"{path} must have one label for each of {n} rows, but has shape {labels.shape}: "
            "write one label for each row, in the order of the rows"
        )


def _read(path: Path, n: int) -> np.ndarray:
    kind = path.suffix.lower()
    if kind == ".npz":
        return read_arrays(path, "y")[0]
    if kind == ".npy":
        return np.asarray(read_mapped(path))
    if kind == ".parquet":
        columns = list(read_columns(path).values())
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    names, lines = read_lines(path, keep_empty=True)
    if len(lines[0]) > 1:
        return np.array(lines)
    cells = [line[0].strip() for line in lines]
    if names and len(cells) == n - 1 and not any(map(is_number, cells)):  # labels are words, and the first is no name
        cells = [*names, *cells]
    while len(cells) > n and not cells[-1]:
        cells.pop()
    if "" in cells:
        raise DataFileError(f"{path} has no label in row {cells.index('') + 1}: fill it in")
    return parse_labels(cells)
