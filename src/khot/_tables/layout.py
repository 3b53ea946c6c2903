"""What stands where in the file of a training, kept for later files."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from khot._files import write_text
from khot.errors import DataFileError


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
