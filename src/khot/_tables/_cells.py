"""Cells of a CSV file as numbers or labels."""

import math
from pathlib import Path

import numpy as np

from khot.errors import DataFileError

MISSING = ("", "na", "n/a", "nan", "null", "none", "inf", "-inf")
OTHER_SEPARATORS = {*";\t|"}


def parse_numbers(
    path: Path,
    lines: list[list[str]],
    names: list[str] | None,
    where: str = "all columns but the label",
    hint: str = "or encode them as numbers",
) -> np.ndarray:
    """Convert lines of cells to finite numbers (lines, columns).

    An error reports the first cell that is not one. Its text ends in `hint` if the cell is a word.
    """
    try:
        numbers = np.array(lines, dtype=np.float64)
        if np.isfinite(numbers).all():
            return numbers
    except ValueError:
        pass
    cells = ((row, column) for row, line in enumerate(lines) for column in range(len(line)))
    row, column = next((row, column) for row, column in cells if not _is_finite(lines[row][column]))
    cell = lines[row][column]
    hint = f"leave out such columns (--ignore), {hint}"
    if cell.strip().lower() in MISSING:
        hint = "fill in missing numbers, or leave out the row"
    elif is_number(cell.replace(",", ".", 1)):
        hint = "write decimals with a point"
    elif len(lines[row]) == 1 and {*cell} & OTHER_SEPARATORS:
        hint = "separate the columns by commas"
    place = f"row {row + 1}{' below the names' if names else ''}"
    place += f", column {column + 1 if names is None else repr(names[column])}"
    raise DataFileError(f"{path} must have finite numbers in {where}, but got {cell!r} in {place}: {hint}")


def parse_labels(cells: list[str]) -> np.ndarray:
    """Convert cells to whole numbers if each one is written as such, and otherwise to texts: 007 is a text.

    Spaces around a label are dropped.
    """
    cells = [cell.strip() for cell in cells]
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return np.array(cells)
    return np.array(numbers if [str(number) for number in numbers] == cells else cells)


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_finite(cell: str) -> bool:
    return is_number(cell) and math.isfinite(float(cell))
