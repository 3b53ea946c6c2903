"""Folders of the trainings of an experiment, times that they took, and files of results."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from khot._files import readable_json, write_text
from khot.training.folders import cached_runs

Result = TypeVar("Result")


@contextmanager
def runs(folder: Path | None, profile: str, experiment: str) -> Iterator[Path]:
    """Folder for trainings: the given one, a temporary one for the quick profile, or one in the user's cache."""
    if folder is None and profile == "quick":
        with tempfile.TemporaryDirectory() as place:
            yield Path(place)
    else:
        yield folder or cached_runs() / experiment


@dataclass(frozen=True)
class Minutes:
    """Time of trainings.

    Processor time is longer than wall-clock time with several threads, and shorter if other programs ran. None if it
    was not measured.
    """

    minutes: float
    processor_minutes: float | None


def write_result(path: Path, content: dict[str, Any]) -> None:
    """Write or replace a file of results."""
    write_text(path, readable_json(content, allow_nan=True))


def read_results(
    folder: Path, pattern: str, make: Callable[..., Result], place: Callable[[Result], tuple[int, ...]]
) -> list[Result]:
    """Results in the files that match a pattern, ordered by `place`. Other files are reported and left out."""
    found = []
    for path in sorted(folder.glob(pattern)):
        try:
            result = make(**json.loads(path.read_text(encoding="utf-8")))
            found.append((place(result), result))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            print(f"left out {path}, which is no result ({type(error).__name__}: {error})", file=sys.stderr)
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def spent(*folders: Path) -> Minutes:
    """Time of all trainings in some folders."""
    histories = [json.loads(path.read_text()) for folder in folders for path in folder.rglob("history.json")]
    records = [record for history in histories for record in history["epochs"]]
    worked = [record.get("processor_seconds") for record in records]
    return Minutes(
        minutes=round(sum(record["seconds"] for record in records) / 60, 4),
        processor_minutes=None if None in worked else round(sum(worked) / 60, 4),
    )
