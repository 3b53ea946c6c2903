"""The lines of a CSV file, and the names of its columns."""

import csv
from collections.abc import Collection
from itertools import dropwhile
from pathlib import Path

from khot._tables._cells import EMPTY, SEPARATORS, is_number
from khot.errors import DataFileError

_LONGEST = 2**31 - 1  # characters of a cell


def read_lines(
    path: Path, header: bool | None = None, empty: bool = False, known: Collection[str] = ()
) -> tuple[list[str] | None, list[list[str]]]:
    """The names of the columns, if the first line has them, and the other lines; of one column also those `empty`.

    A first line with all of the `known` names has them.
    """
    before = csv.field_size_limit(_LONGEST)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(dropwhile(lambda line: not line, csv.reader(file)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(f"{path} cannot be read as CSV ({error}): save it as UTF-8 text with commas") from error
    finally:
        csv.field_size_limit(before)
    lines = [line or [""] for line in lines if line or (empty and len(lines[0]) == 1)]
    named = bool(lines) and (_has_names(lines, known) if header is None else header)
    names = [name.strip() for name in lines.pop(0)] if named else None
    if not lines:
        raise DataFileError(f"{path} has no rows: it needs one row a line, below the names if there are any")
    for number, line in enumerate(lines, start=1 if names is None else 2):
        if len(line) != len(names or lines[0]):
            raise DataFileError(
                f"{path} has {len(names or lines[0])} columns in its first line and {len(line)} in line {number}: "
                "give all lines as many"
            )
    twice = {name for name in names or [] if (names or []).count(name) > 1}
    if twice:
        raise DataFileError(f"{path} has several columns with the name {min(twice)!r}: give each its own")
    return names, lines


def without(
    path: Path, names: list[str] | None, lines: list[list[str]], ignored: Collection[str], needed: bool = False
) -> tuple[list[str] | None, list[list[str]]]:
    """Names and lines without the `ignored` columns, which may be `needed`."""
    if needed:
        for name in ignored:
            place_of(path, names, name)
    if names is None or not ignored:
        return names, lines
    kept = [place for place, name in enumerate(names) if name not in ignored]
    return [names[place] for place in kept], [[line[place] for place in kept] for line in lines]


def check_named(path: Path, names: list[str] | None) -> None:
    """Refuse columns without a name where others have one."""
    if names and "" in names:
        raise DataFileError(
            f"{path} has a column without a name, number {names.index('') + 1}: name it, or leave it out, "
            "as one does with the index of a data frame (index=False)"
        )


def place_of(path: Path, names: list[str] | None, label: str | None) -> int:
    """The number of the column of a name, the last one for None."""
    if label is None:
        return -1
    if names is None or label not in names:
        hint = f"columns {', '.join(names)}: name one of them" if names else "no names in its first line: add them"
        if names and len(names) == 1 and {*names[0]} & SEPARATORS:
            hint = f"one column, {names[0]}: separate the columns by commas"
        raise DataFileError(f"{path} has no column {label!r}, but {hint}")
    return names.index(label)


def _has_names(lines: list[list[str]], known: Collection[str]) -> bool:
    first, rest = [cell.strip() for cell in lines[0]], lines[1:]
    words = [i for i, cell in enumerate(first) if not is_number(cell)]
    counted = [cell for cell in first if is_number(cell)]
    if (known and {*known} <= {*first}) or (len(counted) > 3 and counted == [str(i) for i in range(len(counted))]):
        return True  # the latter as data frames without names have them
    named = [i for i in words if first[i].lower() not in EMPTY]  # a number that is missing is no name
    return len(words) == len(first) or any(all(i < len(x) and is_number(x[i]) for x in rest) for i in named if rest)
