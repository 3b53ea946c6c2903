"""The lines of a CSV file, and the names of its columns."""

import csv
from collections.abc import Collection, Iterator
from itertools import dropwhile
from pathlib import Path
from typing import Any

from khot._tables._cells import MISSING, OTHER_SEPARATORS, is_number
from khot.errors import DataFileError

_LONGEST_CELL = 2**31 - 1  # characters


def read_lines(
    path: Path, header: bool | None = None, keep_empty: bool = False, known: Collection[str] = ()
) -> tuple[list[str] | None, list[list[str]]]:
    """Read a CSV file as the names of its columns, if the first line has names, and its other lines.

    Parameters
    ----------
    path : Path
        The file.
    header : bool, optional
        Whether the first line has names; by default it has if it contains all `known` names, if none of its cells is a
        number, if one is a word above numbers only, or if it counts the columns from 0 (more than three).
    keep_empty : bool
        Whether empty lines of a file with one column are empty cells; otherwise they are skipped.
    known : collection of str
        Names that the first line may have.
    """
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            numbered = list(dropwhile(lambda numbered: not numbered[1], _numbered(csv.reader(file, strict=True))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(f"{path} cannot be read as CSV ({error}): save it as UTF-8 text with commas") from error
    finally:
        csv.field_size_limit(limit)
    keep_empty = keep_empty and bool(numbered) and len(numbered[0][1]) == 1
    numbered = [(number, line or [""]) for number, line in numbered if line or keep_empty]
    numbers, lines = [number for number, _ in numbered], [line for _, line in numbered]
    named = bool(lines) and (_has_names(lines, known) if header is None else header)
    names = [name.strip() for name in lines.pop(0)] if named else None
    if not lines:
        raise DataFileError(f"{path} has no rows: write one row on each line, below the names if there are any")
    first = names or lines[0]
    for number, line in zip(numbers[-len(lines) :], lines, strict=True):
        if len(line) != len(first):
            other = next((sign for sign in "".join(first) if sign in OTHER_SEPARATORS), None)
            hint = f"separate the columns by commas, not by {other!r}, and write decimals with a point"
            raise DataFileError(
                f"{path} has {len(first)} columns in its first line and {len(line)} in line {number}: "
                f"{hint if other else 'write the same number of columns in all lines'}"
            )
    repeated = {name for name in names or [] if (names or []).count(name) > 1}
    if repeated:
        raise DataFileError(f"{path} has several columns with the name {min(repeated)!r}: rename all but one")
    return names, lines


def drop_columns(
    path: Path, names: list[str] | None, lines: list[list[str]], ignored: Collection[str], required: bool = False
) -> tuple[list[str] | None, list[list[str]]]:
    """Return names and lines without the `ignored` columns, all of which must exist if `required`."""
    if required:
        check_ignored(path, names, ignored)
    if names is None or not ignored:
        return names, lines
    kept = [i for i, name in enumerate(names) if name not in ignored]
    if not kept:
        raise DataFileError(f"{path} has only columns that are ignored, {', '.join(names)}: ignore fewer of them")
    return [names[i] for i in kept], [[line[i] for i in kept] for line in lines]


def check_ignored(path: Path, names: list[str] | None, ignored: Collection[str]) -> None:
    """Refuse to ignore columns that do not exist."""
    for name in ignored:
        if names and name not in names and {part.strip() for part in name.split(",")} <= {*names}:
            raise DataFileError(
                f"{path} has no column {name!r}, but columns {', '.join(names)}: separate names by spaces"
            )
        column_index(path, names, name)


def check_all_named(path: Path, names: list[str] | None) -> None:
    """Refuse a table in which some columns have a name and one has none."""
    if names and "" in names:
        raise DataFileError(
            f"{path} has a column without a name, number {names.index('') + 1}: name it, or leave it out "
            "(if it is the index of a data frame, write the file with index=False)"
        )


def column_index(path: Path, names: list[str] | None, label: str | None) -> int:
    """Index of the column with the name `label`; -1, the last column, for None."""
    if label is None:
        return -1
    if names is None or label not in names:
        hint = f"columns {', '.join(names)}: choose one of them" if names else "no names in its first line: add them"
        if names and len(names) == 1 and {*names[0]} & OTHER_SEPARATORS:
            hint = f"one column, {names[0]}: separate the columns by commas"
        raise DataFileError(f"{path} has no column {label!r}, but {hint}")
    return names.index(label)


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Lines of a CSV reader, with the number in the file; of a line that a quoted cell continues, that of its start."""
    start = 1
    for line in reader:
        yield start, line
        start = reader.line_num + 1


def _has_names(lines: list[list[str]], known: Collection[str]) -> bool:
    """Whether the first line has names; see `read_lines`."""
    first, rest = [cell.strip() for cell in lines[0]], lines[1:]
    words = [i for i, cell in enumerate(first) if not is_number(cell)]
    numbers = [cell for cell in first if is_number(cell)]
    counted = len(numbers) > 3 and numbers == [str(i) for i in range(len(numbers))]  # a data frame without names
    if counted or len(words) == len(first) or (known and {*known} <= {*first}):
        return True
    possible = [i for i in words if first[i].lower() not in MISSING]  # a missing number is not a name
    return bool(rest) and any(all(i < len(x) and is_number(x[i]) for x in rest) for i in possible)
