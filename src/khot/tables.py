"""Rows and labels from CSV, NPY, NPZ and Parquet files, and tables to CSV."""

import csv
import json
import math
import zipfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from khot._files import new_file, write_array, write_text
from khot.errors import DataFileError

_LONGEST = 2**31 - 1  # characters of a cell
_EMPTY = ("", "na", "n/a", "nan", "null", "none", "inf", "-inf")
_SEPARATORS = {*";\t|"}  # that other files have between columns


@dataclass(frozen=True)
class Layout:
    """What stands where in a CSV file.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns but the label, if the file has names.
    label : str or None
        Name of the label column.
    place : int
        Number of the label column, from 0, among those that are not ignored.
    ignored : list of str
        Names of columns that are left out, if they are there.
    """

    columns: list[str] | None
    label: str | None
    place: int
    ignored: list[str] = field(default_factory=list)


def read_rows(
    path: Path,
    label: str | None = None,
    header: bool | None = None,
    ignored: Collection[str] = (),
    needed: bool = True,
) -> tuple[np.ndarray, np.ndarray, Layout | None]:
    """Rows, labels and layout of a CSV file whose last column, or column `label`, is the label; or X and y of an NPZ.

    The first line has names if `header` says so; by default if none of its cells is a number, or if one is a word where
    all other lines have numbers. Commas separate the columns, of which some are `ignored`, and may be `needed`.
    """
    if _is_npz(path):
        X, y = _arrays(path)  # noqa: N806
        if y is None:
            raise DataFileError(f"{path} has no array y: save it with np.savez(path, X=rows, y=labels)")
        if label is not None or ignored:
            name = next(iter(ignored), label)
            raise DataFileError(f"{path} has no columns with names such as {name!r}: it has the arrays X and y")
        return X, y, None
    names, lines = _without(path, *_lines(path, header), ignored, needed)
    place = _place(path, names, label) % len(lines[0])
    if len(lines[0]) == 1:
        raise DataFileError(f"{path} has only one column: it needs numbers and a label, with commas between them")
    if names and "" in names:
        raise DataFileError(
            f"{path} has a column without a name, number {names.index('') + 1}: name it, or leave it out, "
            "as one does with the index of a data frame (index=False)"
        )
    columns = names[:place] + names[place + 1 :] if names else None
    rows = _numbers(path, [line[:place] + line[place + 1 :] for line in lines], columns)
    for number, line in enumerate(lines, 1):
        if not line[place].strip():
            raise DataFileError(f"{path} has no label in row {number}: fill it in, or leave out the row")
    labels = _labels([line[place] for line in lines])
    return rows, labels, Layout(columns, names[place] if names else None, place, list(ignored))


def read_queries(
    path: Path, columns: int, layout: Layout | None, label: str | None = None, header: bool | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows to predict, and their labels if the file has them.

    The columns of a CSV file go by their names, if both this file and that of the `layout` have names, or else by their
    order; then there are labels, at the same place, if it has one column more than needed.
    """
    if _is_npz(path):
        X, y = _arrays(path)  # noqa: N806
        if y is not None and y.shape != (len(X),):
            raise DataFileError(f"{path} has {len(X)} rows X, but labels y of shape {y.shape}: give every row one")
        return X, y
    known = {*(layout.columns or [])} if layout else set()
    names, lines = _without(path, *_lines(path, header, known=known), layout.ignored if layout else ())
    if names is not None and label is not None:
        _place(path, names, label)
    if layout is None or layout.columns is None or names is None:
        labelled = label is not None or len(lines[0]) == columns + 1
        place = (layout.place if layout else len(lines[0]) - 1) if label is None else _place(path, names, label)
        order = [i for i in range(len(lines[0])) if not (labelled and i == place)]
    else:
        label = layout.label if label is None else label
        labelled, place = label in names, names.index(label) if label in names else -1
        order = by_name(path, names, layout.columns, label)
    rows = _numbers(path, [[line[i] for i in order] for line in lines], [names[i] for i in order] if names else None)
    return rows, _labels([line[place] for line in lines]) if labelled else None


def by_name(path: Path, names: list[str], columns: list[str], label: str | None = None) -> list[int]:
    """Where the `columns` of the training stand among the `names` of a file, which may have one more, the label."""
    for name in columns:
        if name not in names:
            raise DataFileError(f"{path} has no column {name!r}, which the model was trained with: add it")
    for name in names:
        if name not in columns and name != label:
            raise DataFileError(
                f"{path} has a column {name!r}, which the model was not trained with: leave it out of the file, or "
                "ignore it (--ignore)"
            )
    return [names.index(name) for name in columns]


class Table(NamedTuple):
    """Rows of numbers, their labels, the names of their columns and of that of the labels, if there are any."""

    rows: np.ndarray
    labels: np.ndarray | None = None
    names: list[str] | None = None
    label: str | None = None


def read_matrix(
    path: Path, label: str | None = None, ignored: Collection[str] = (), columns: list[str] | None = None
) -> Table:
    """Rows of numbers, and their labels if there are any: array y of an NPZ, or the column `label`.

    An NPY file is not read but mapped into memory. An NPZ file has arrays X and perhaps y. A CSV file may have a first
    line with names; Parquet needs pyarrow. Of the latter two, columns that are `ignored` are left out. If the names of
    the `columns` of the training are given, those of the file come in the same order, and ignored ones need not be
    there.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        if label is not None:
            message = f"{path} has no columns with names, and there is no file {label}: pass a file of labels"
            raise DataFileError(message)
        if ignored and columns is None:
            raise DataFileError(f"{path} has no columns with names such as {next(iter(ignored))!r}: ignore none")
        table = Table(*_arrays(path)) if kind == ".npz" else Table(_mapped(path))
        if table.rows.ndim > 2:
            raise DataFileError(
                f"{path} must have rows of numbers, but got shape {table.rows.shape}: reshape it to (rows, columns)"
            )
        _check_labels(path, table.labels, len(table.rows))
        return table
    table = (_parquet if kind == ".parquet" else _csv)(path, label, ignored, columns)
    if not columns or not table.names:
        return table
    return Table(table.rows[:, by_name(path, table.names, columns)], table.labels, columns)


def _csv(path: Path, label: str | None, ignored: Collection[str], columns: list[str] | None) -> Table:
    if label is not None:
        rows, labels, layout = read_rows(path, label, ignored=ignored, needed=columns is None)
        return Table(rows, labels, layout.columns if layout else None)
    rows, names = read_named(path, ignored, needed=columns is None, known=columns or ())
    return Table(rows, None, names)


def read_texts(path: Path, column: str) -> list[str]:
    """The texts in a column of a Parquet file, or of a CSV file with names in its first line.

    Of a CSV file with one column, empty lines are texts.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        raise DataFileError(f"{path} has no columns with names such as {column!r}: write a CSV or Parquet file")
    if kind == ".parquet":
        table = _arrow(path)
        values = table.column(_place(path, table.column_names, column)).to_pylist()
        return ["" if value is None else str(value) for value in values]
    names, lines = _lines(path, header=True, empty=True)
    place = _place(path, names, column)
    return [line[place] for line in lines]


def read_named(
    path: Path,
    ignored: Collection[str] = (),
    needed: bool = False,
    known: Collection[str] = (),
    hint: str = "or encode them as numbers",
    header: bool | None = None,
) -> tuple[np.ndarray, list[str] | None]:
    """Rows of numbers of a CSV file without the `ignored` columns, which may be `needed`, and the others' names.

    A first line with all of the `known` names has names, or one of which `header` says so. `hint` says what else can be
    done with words than to leave them out.
    """
    names, lines = _without(path, *_lines(path, header, known=known), ignored, needed)
    return _numbers(path, lines, names, "all columns", hint), names


def read_labelled(path: Path, labels: str | None, ignored: Collection[str] = ()) -> Table:
    """Rows of numbers with labels from a file of their own, or the column of that name; without, those of an NPZ."""
    if labels is None or not Path(labels).is_file():
        return read_matrix(path, labels, ignored)._replace(label=labels)
    table = read_matrix(path, None, ignored)
    return table._replace(labels=read_labels(Path(labels), len(table.rows)))


def read_labels(path: Path, rows: int) -> np.ndarray:
    """Labels of so many rows: an NPY file, array y of an NPZ, or the only column of a CSV or Parquet file."""
    labels = _labels_in(path, rows)
    _check_labels(path, labels, rows)
    return labels


def _check_labels(path: Path, labels: np.ndarray | None, rows: int) -> None:
    if labels is not None and labels.dtype.kind == "V":
        raise DataFileError(f"{path} must have numbers or texts as labels, but got {labels.dtype}: save one column")
    if labels is not None and labels.shape != (rows,):
        raise DataFileError(
            f"{path} must have one label for each of {rows} rows, but has shape {labels.shape}: give every row one"
        )


def _labels_in(path: Path, rows: int) -> np.ndarray:
    kind = path.suffix.lower()
    if kind == ".npz":
        return _arrays(path, "y")[0]
    if kind == ".npy":
        return np.asarray(_mapped(path))
    if kind == ".parquet":
        columns = list(_columns(path).values())
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    names, lines = _lines(path, empty=True)
    if len(lines[0]) > 1:
        return np.array(lines)
    cells = [line[0].strip() for line in lines]
    if names and len(cells) == rows - 1 and not any(map(_is_number, cells)):  # all are words, and the first is no name
        cells = [*names, *cells]
    while len(cells) > rows and not cells[-1]:
        cells.pop()
    if "" in cells:
        raise DataFileError(f"{path} has no label in row {cells.index('') + 1}: give every row one")
    return _labels(cells)


def write_layout(path: Path, layout: Layout) -> None:
    """Keep a layout as JSON."""
    write_text(path, json.dumps(asdict(layout), indent=1) + "\n")


def read_layout(path: Path) -> Layout | None:
    """The layout that was kept, or None if there is no such file."""
    if not path.is_file():
        return None
    try:
        layout = Layout(**json.loads(path.read_text(encoding="utf-8")))
        columns = [] if layout.columns is None else layout.columns
        listed = isinstance(columns, list) and isinstance(layout.ignored, list)
        if not listed or not all(isinstance(name, str) for name in [*columns, *layout.ignored]):
            raise TypeError("columns must be lists of names")
        if not isinstance(layout.place, int):
            raise TypeError("place must be a number")
    except (TypeError, ValueError) as error:
        raise DataFileError(f"{path} is damaged ({error}): train the model anew") from error
    return layout


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with new_file(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


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


def _is_npz(path: Path) -> bool:
    """Whether a file is NPZ rather than CSV; others are refused."""
    kind = path.suffix.lower()
    if kind in (".npy", ".parquet"):
        raise DataFileError(f"{path} must be a CSV or NPZ file: np.savez(path, X=rows, y=labels) writes one")
    return kind == ".npz"


def _arrays(path: Path, needed: str = "X") -> tuple[np.ndarray, np.ndarray | None]:
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


def _mapped(path: Path) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim == 0:
            raise ValueError("it holds a single number")
        return array
    except (ValueError, EOFError) as error:
        raise DataFileError(f"{path} cannot be read as NPY ({error}): save it with np.save, without objects") from error


def _columns(path: Path) -> dict[str, np.ndarray]:
    table = _arrow(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def _arrow(path: Path) -> Any:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataFileError(f"{path} needs pyarrow to be read: pip install 'khot[parquet]'") from error
    try:
        return parquet.read_table(path)
    except ArrowException as error:
        raise DataFileError(f"{path} cannot be read as Parquet ({error}): write it anew") from error


def _parquet(path: Path, label: str | None, ignored: Collection[str], columns: list[str] | None) -> Table:
    found = _columns(path)
    for name in ignored:
        if columns is None:
            _place(path, list(found), name)
        found.pop(name, None)
    labels = None if label is None else found.pop(list(found)[_place(path, list(found), label)])
    words = [name for name, values in found.items() if values.dtype.kind not in "biuf"]
    if words or not found:
        got = f"{words[0]!r} of other things" if words else "none at all"
        raise DataFileError(f"{path} must have columns of numbers, but got {got}: encode or leave out such columns")
    return Table(np.column_stack(list(found.values())), labels, list(found))


def _lines(
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


def _has_names(lines: list[list[str]], known: Collection[str]) -> bool:
    first, rest = [cell.strip() for cell in lines[0]], lines[1:]
    words = [i for i, cell in enumerate(first) if not _is_number(cell)]
    counted = [cell for cell in first if _is_number(cell)]
    if (known and {*known} <= {*first}) or (len(counted) > 3 and counted == [str(i) for i in range(len(counted))]):
        return True  # the latter as data frames without names have them
    named = [i for i in words if first[i].lower() not in _EMPTY]  # a number that is missing is no name
    return len(words) == len(first) or any(all(i < len(x) and _is_number(x[i]) for x in rest) for i in named if rest)


def _place(path: Path, names: list[str] | None, label: str | None) -> int:
    if label is None:
        return -1
    if names is None or label not in names:
        hint = f"columns {', '.join(names)}: name one of them" if names else "no names in its first line: add them"
        if names and len(names) == 1 and {*names[0]} & _SEPARATORS:
            hint = f"one column, {names[0]}: separate the columns by commas"
        raise DataFileError(f"{path} has no column {label!r}, but {hint}")
    return names.index(label)


def _without(
    path: Path, names: list[str] | None, lines: list[list[str]], ignored: Collection[str], needed: bool = False
) -> tuple[list[str] | None, list[list[str]]]:
    """Names and lines without the `ignored` columns, which may be `needed`."""
    if needed:
        for name in ignored:
            _place(path, names, name)
    if names is None or not ignored:
        return names, lines
    kept = [place for place, name in enumerate(names) if name not in ignored]
    return [names[place] for place in kept], [[line[place] for place in kept] for line in lines]


def _numbers(
    path: Path,
    lines: list[list[str]],
    names: list[str] | None,
    where: str = "all columns but the label",
    hint: str = "or encode them as numbers",
) -> np.ndarray:
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
    if cell.strip().lower() in _EMPTY:
        hint = "fill in missing numbers, or leave out the row"
    elif _is_number(cell.replace(",", ".", 1)):
        hint = "write decimals with a point"
    elif len(lines[row]) == 1 and {*cell} & _SEPARATORS:
        hint = "separate the columns by commas"
    place = f"row {row + 1}{' below the names' if names else ''}"
    place += f", column {column + 1 if names is None else repr(names[column])}"
    raise DataFileError(f"{path} must have finite numbers in {where}, but got {cell!r} in {place}: {hint}")


def _labels(cells: list[str]) -> np.ndarray:
    """Whole numbers if all are written as such, texts otherwise: 007 is a text. Spaces around them do not count."""
    cells = [cell.strip() for cell in cells]
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return np.array(cells)
    return np.array(numbers if [str(number) for number in numbers] == cells else cells)


def _is_finite(cell: str) -> bool:
    return _is_number(cell) and math.isfinite(float(cell))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
