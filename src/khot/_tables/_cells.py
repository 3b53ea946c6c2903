"""Cells of a CSV file as numbers or labels."""

import math
from pathlib import Path

import numpy as np

from khot.errors import DataFileError

EMPTY = ("", "na", "n/a", "nan", "null", "none", "inf", "-inf")
SEPARATORS = {*";\t|"}  # that other files have between columns


def numbers_in(
    path: Path,
    lines: list[list[str]],
    names: list[str] | None,
    where: str = "all columns but the label",
    hint: str = "or encode them as numbers",
) -> np.ndarray:
    """Lines of cells as finite numbers, or an error that says where there is none."""
    try:
        numbers = np.array(lines, dtype=np.float64)
        if np.isfinite(numbers).all():
            return numbers
    except ValueError:
        pass
    places = ((row, column) for row, line in enumerate(lines) for column in range(len(line)))
    row, column = next(place for place in places if not _is_finite(lines[place[0]][place[1]]))
    cell = lines[row][column]
    hint = f"leave out such columns (--ignore), {hint}"
    if cell.strip().lower() in EMPTY:
        hint = "fill in missing numbers, or leave out the row"
    elif is_number(cell.replace(",", ".", 1)):
        hint = "write decimals with a point"
    elif len(lines[row]) == 1 and {*cell} & SEPARATORS:
        hint = "separate the columns by commas"
    place = f"row {row + 1}{' below the names' if names else ''}"
    place += f", column {column + 1 if names is None else repr(names[column])}"
    raise DataFileError(f"{path} must have finite numbers in {where}, but got {cell!r} in {place}: {hint}")


def labels_in(cells: list[str]) -> np.ndarray:
    """Whole numbers if all are written as such, texts otherwise: 007 is a text. Spaces around them do not count."""
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
