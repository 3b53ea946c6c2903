"""The small handwritten digits that come with scikit-learn."""

import numpy as np

from khot.datasets.rows import Dataset, numbered
from khot.datasets.split import split

_ORIGIN = "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits"


def load() -> Dataset:
    """Load digits of 8 × 8 pixels (Alpaydin, Kaynak, 1998); khot itself sets a fifth of them aside as a test set."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    rows = numbered(np.asarray(pixels, np.uint8).reshape(-1, 8, 8), np.asarray(labels))
    train, test = split(rows, test_rows=360, random_state=0, stratified=True)
    return Dataset("digits", train, test, tuple("0123456789"), _ORIGIN)
