"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import numpy as np


@contextmanager
def new_file(place: Path) -> Iterator[Path]:
    """A path beside `place` to write to; it becomes `place` if all goes well, and else nothing is left of it.

    What can't be replaced, such as a pipe, is written to as it is.
    """
    if place.exists() and not place.is_file():
        yield place
        return
    place = place.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(place.parent, os.W_OK):
        yield place
        return
    part = place.with_name(f".{uuid4().hex}.{place.name}")
    try:
        yield part
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def write_array(place: Path, values: np.ndarray) -> None:
    """Write or replace an NPY file, whatever its name."""
    with new_file(place) as part, part.open("wb") as file:
        np.save(file, values)


def write_text(place: Path, text: str) -> None:
    """Write or replace a text file. What UTF-8 can't hold becomes a question mark."""
    with new_file(place) as part:
        part.write_text(text, encoding="utf-8", errors="replace", newline="")
