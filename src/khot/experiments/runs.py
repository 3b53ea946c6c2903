"""Where the trainings of an experiment are kept, and how long they took."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from khot.training._folders import cached_runs


@contextmanager
def runs(folder: Path | None, profile: str, experiment: str) -> Iterator[Path]:
    """The given folder, or one in the user's cache, or for the quick profile one that does not stay."""
    if folder is None and profile == "quick":
        with tempfile.TemporaryDirectory() as place:
            yield Path(place)
    else:
        yield folder or cached_runs() / experiment


def spent(folder: Path) -> float:
    """The seconds that all trainings below a folder took."""
    histories = (json.loads(path.read_text()) for path in folder.rglob("history.json"))
    return sum(record["seconds"] for history in histories for record in history["epochs"])
