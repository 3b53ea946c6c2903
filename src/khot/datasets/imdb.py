"""IMDB reviews: the archive of one file a review, as two CSV files with the columns id, text and label.

An id is ``number_rating``, the review's file name in the archive. Rows go by number, negative before positive.
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
    """Film reviews, negative and positive (Maas et al., 2011); texts as published, with their ``<br />``."""
    files = obtain_unpacked(list(_PATHS.values()), "aclImdb_v1.tar.gz", _unpack)
    train, test = (_read(path, place) for path, place in zip(_PATHS.values(), files, strict=True))
    return Dataset(
        "imdb", train, test, ("negative", "positive"), "https://ai.stanford.edu/~amaas/data/sentiment/", tuple(files)
    )


def _read(path: str, place: Path) -> Rows:
    with reading(place), lzma.open(place, "rt", encoding="utf-8", newline="") as file:
        header, *table = list(csv.reader(file)) or [[]]
    if header != _COLUMNS:
        raise unusable(place, f"its columns must be {_COLUMNS}, but are {header}")
    if len(table) != _sources.FILES[path].rows:
        raise unusable(place, f"it must have {_sources.FILES[path].rows} rows, but has {len(table)}")
    for number, row in enumerate(table):
        if len(row) != 3 or row[2] not in ("0", "1"):
            raise unusable(place, f"row {number} must be an id, a text and a label 0 or 1, but is {str(row)[:80]}")
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
            raise unusable(archive, f"it has no reviews to {part}")
        _write(folder / _PATHS[part], ((review, text, label) for _, label, review, text in sorted(rows)))


def _write(place: Path, rows: Iterable[tuple[str, str, int]]) -> None:
    fast = 1  # at the default, packing takes longer than everything else
    with new_file(place) as part, lzma.open(part, "wt", encoding="utf-8", newline="", preset=fast) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows(rows)
