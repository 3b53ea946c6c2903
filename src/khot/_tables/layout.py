"""The columns of a training file, saved with the model so that later files are read in the same way."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from khot._files import write_json
from khot.errors import DataFileError


@dataclass(frozen=True)
class Layout:
    """The columns of a CSV file.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns of numbers, without the label; None if the file has no names.
    label : str or None
        Name of the label column.
    place : int
        Index of the label column among the columns that are not ignored.
    ignored : list of str
        Names of columns to leave out where they exist.
    """

    columns: list[str] | None
    label: str | None
    place: int
    ignored: list[str] = field(default_factory=list)


def write_layout(path: Path, layout: Layout) -> None:
    """Save a layout as JSON."""
    write_json(path, asdict(layout))


def read_layout(path: Path) -> Layout | None:
    """Load a saved layout; None if there is no such file."""
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
        raise DataFileError(f"{path} is damaged ({error}): train the model again") from error
    return layout


def order_of_columns(path: Path, names: Sequence[str], columns: Sequence[str], label: str | None = None) -> list[int]:
    """Indices of the training `columns` among the `names` of a file, which may also have the label."""
    for name in columns:
        if name not in names:
            raise DataFileError(f"{path} has no column {name!r}, with which the model was trained: add it")
    for name in names:
        if name not in columns and name != label:
            raise DataFileError(
                f"{path} has a column {name!r}, with which the model was not trained: remove it from the file, or "
                "ignore it (--ignore)"
            )
    return [names.index(name) for name in columns]
