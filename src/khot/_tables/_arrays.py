"""Arrays from NPZ, NPY and Parquet files."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from khot.errors import DataFileError


def read_arrays(path: Path, name: str = "X") -> tuple[np.ndarray, np.ndarray | None]:
    """Read the array `name` of an NPZ file, and its array y if it has one."""
    if path.is_file() and not zipfile.is_zipfile(path):
        raise DataFileError(f"{path} is no NPZ file, or a damaged one: save it with np.savez")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise DataFileError(
            f"{path} cannot be read as NPZ ({error}): save it with np.savez, without Python objects"
        ) from error
    if name not in arrays:
        raise DataFileError(
            f"{path} has arrays {sorted(arrays)}, but not {name}: save it with np.savez(path, X=rows, y=labels)"
        )
    for key in {"X", "y"} & arrays.keys():
        if arrays[key].ndim == 0:
            raise DataFileError(f"{path} has a single number as {key}: save an array with one entry for each row")
    return arrays[name], arrays.get("y")


def read_mapped(path: Path) -> np.ndarray:
    """Map the array of an NPY file into memory without reading it."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim == 0:
            raise ValueError("it holds a single number")
        return array
    except (ValueError, EOFError) as error:
        raise DataFileError(
            f"{path} cannot be read as NPY ({error}): save it with np.save, without Python objects"
        ) from error


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Read the columns of a Parquet file by name."""
    table = read_arrow(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def read_arrow(path: Path) -> Any:
    """Read a Parquet file as a pyarrow table."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataFileError(f"reading {path} needs pyarrow: pip install 'khot[parquet]'") from error
    try:
        return parquet.read_table(path)
    except ArrowException as error:
        raise DataFileError(f"{path} cannot be read as Parquet ({error}): write it again") from error
