"""IMDB reviews. The archive with one file for each review becomes two CSV files with the columns id, text and label.

An id is ``number_rating``, the name of the review's file in the archive. Rows are sorted by number, the
negative review of a number before the positive one.
"""

import csv
import lzma
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from khot._files import new_file
from khot.datasets import _sources
from khot.datasets._archive import members
from khot.datasets._files import obtain_unpacked, reading, unusable
from khot.datasets.rows import Dataset, Rows

_PATHS = {part: f"IMDB/{part}.csv.xz" for part in ("train", "test")}
_MEMBER = re.compile(r"(?:\./)?aclImdb/(train|test)/(pos|neg)/((\d+)_\d+)\.txt")
_COLUMNS = ["id", "text", "label"]


def load() -> Dataset:
    """Load negative and positive film reviews (Maas et al., 2011); texts as published, with their ``<br />``."""
    files = obtain_unpacked(list(_PATHS.values()), "aclImdb_v1.tar.gz", _unpack)
    train, test = (_read(path, file) for path, file in zip(_PATHS.values(), files, strict=True))
    return Dataset(
        "imdb", train, test, ("negative", "positive"), "https://ai.stanford.edu/~amaas/data/sentiment/", tuple(files)
    )


def _read(path: str, file: Path) -> Rows:
    with reading(file), lzma.open(file, "rt", encoding="utf-8", newline="") as stream:
        header, *table = list(csv.reader(stream)) or [[]]
    if header != _COLUMNS:
        raise unusable(file, f"its columns must be {_COLUMNS}, but are {header}")
    if len(table) != _sources.FILES[path].rows:
        raise unusable(file, f"it must have {_sources.FILES[path].rows} rows, but has {len(table)}")
    for number, row in enumerate(table):
        if len(row) != 3 or row[2] not in ("0", "1"):
            raise unusable(file, f"row {number} must be an id, a text and a label 0 or 1, but is {str(row)[:80]}")
    ids, texts, labels = zip(*table, strict=True)
    return Rows(np.array(texts, object), np.array(labels).astype(np.int64), np.array(ids, object))


def _unpack(archive: Path, folder: Path) -> None:
    reviews = {part: [] for part in _PATHS}
    for name, content in members(archive, _MEMBER):
        part, sentiment, review, number = name.groups()
        with reading(archive):
            text = content.decode("utf-8")
        reviews[part].append((int(number), int(sentiment == "pos"), review, text))
    for part, rows in reviews.items():
        if not rows:
            raise unusable(archive, f"it has no {part} reviews")
        _write(folder / _PATHS[part], ((review, text, label) for _, label, review, text in sorted(rows)))


def _write(file: Path, rows: Iterable[tuple[str, str, int]]) -> None:
    fast = 1  # the default preset would take longer than all the rest
    with new_file(file) as part, lzma.open(part, "wt", encoding="utf-8", newline="", preset=fast) as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows(rows)
