"""Arrays in NPZ, NPY and Parquet files."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from khot.errors import DataFileError


def read_arrays(path: Path, needed: str = "X") -> tuple[np.ndarray, np.ndarray | None]:
    """The array of a name of an NPZ file, and its array y, if there is one."""
    if path.is_file() and not zipfile.is_zipfile(path):
        raise DataFileError(f"{path} is no NPZ file, or a damaged one: save it with np.savez")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise DataFileError(
            f"{path} cannot be read as NPZ ({error}): save it with np.savez, without objects"
        ) from error
    if needed not in arrays:
        raise DataFileError(
            f"{path} has arrays {sorted(arrays)}, but not {needed}: save it with np.savez(path, X=rows, y=labels)"
        )
    for name, array in arrays.items():
        if array.ndim == 0 and name in ("X", "y"):
            raise DataFileError(f"{path} has a single number as {name}: save an array with an entry for each row")
    return arrays[needed], arrays.get("y")


def read_mapped(path: Path) -> np.ndarray:
    """The array of an NPY file, which is not read but mapped into memory."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim == 0:
            raise ValueError("it holds a single number")
        return array
    except (ValueError, EOFError) as error:
        raise DataFileError(f"{path} cannot be read as NPY ({error}): save it with np.save, without objects") from error


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """The columns of a Parquet file by their names."""
    table = read_arrow(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def read_arrow(path: Path) -> Any:
    """A Parquet file as a table of pyarrow."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataFileError(f"{path} needs pyarrow to be read: pip install 'khot[parquet]'") from error
    try:
        return parquet.read_table(path)
    except ArrowException as error:
        raise DataFileError(f"{path} cannot be read as Parquet ({error}): write it anew") from error
