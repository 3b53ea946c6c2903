"""20 Newsgroups, reduced by Sam Roweis to 100 words: which words occur in a document, and its top-level group."""

from typing import Any

import numpy as np

from khot.datasets import _sources
from khot.datasets._files import obtain, reading, unusable
from khot.datasets.rows import Dataset, numbered

_PATH = "20news_w100.mat"
_WORDS = 100
_CLASSES = ("comp", "rec", "sci", "talk")


def load() -> Dataset:
    """Load all documents as training rows; they are published as one set."""
    from scipy import io, sparse

    file = obtain(_PATH)
    with reading(file):
        content = io.loadmat(file, variable_names=["documents", "newsgroups"])
    documents: Any = content.get("documents")
    groups: Any = content.get("newsgroups")
    rows = _sources.FILES[_PATH].rows
    if not sparse.issparse(documents) or documents.shape != (_WORDS, rows):
        raise unusable(file, f"its documents must be a sparse matrix of {_WORDS} words by {rows} documents")
    if groups is None or groups.shape != (1, rows) or set(np.unique(groups)) - {1, 2, 3, 4}:
        raise unusable(file, f"its newsgroups must be {rows} numbers between 1 and 4")
    all_rows = numbered(documents.T.toarray().astype(np.uint8), groups[0].astype(np.int64) - 1)
    none = all_rows.take(np.arange(0))
    return Dataset("20newsgroups-w100", all_rows, none, _CLASSES, "https://cs.nyu.edu/~roweis/data.html", (file,))
