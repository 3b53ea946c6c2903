"""Where the trainings of an experiment are kept, and how long they took."""

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
    """The given folder, or one in the user's cache, or for the quick profile one that does not stay."""
    if folder is None and profile == "quick":
        with tempfile.TemporaryDirectory() as place:
            yield Path(place)
    else:
        yield folder or cached_runs() / experiment


@dataclass(frozen=True)
class Minutes:
    """What trainings took.

    Processors worked for a longer time where there are several threads, and for a shorter one where other programs were
    at work. None if that was not measured.
    """

    minutes: float
    processor_minutes: float | None


def write_result(path: Path, content: dict[str, Any]) -> None:
    """Write or replace a file of results."""
    write_text(path, readable_json(content, allow_nan=True))


def read_results(
    folder: Path, pattern: str, make: Callable[..., Result], place: Callable[[Result], tuple[int, ...]]
) -> list[Result]:
    """What an experiment wrote into files of a pattern, by their place; others are told of and left out."""
    found = []
    for path in sorted(folder.glob(pattern)):
        try:
            result = make(**json.loads(path.read_text(encoding="utf-8")))
            found.append((place(result), result))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            print(f"left out {path}, which is no result ({type(error).__name__}: {error})", file=sys.stderr)
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def spent(*folders: Path) -> Minutes:
    """The time of all trainings below some folders."""
    histories = [json.loads(path.read_text()) for folder in folders for path in folder.rglob("history.json")]
    records = [record for history in histories for record in history["epochs"]]
    worked = [record.get("processor_seconds") for record in records]
    return Minutes(
        minutes=round(sum(record["seconds"] for record in records) / 60, 4),
        processor_minutes=None if None in worked else round(sum(worked) / 60, 4),
    )
