"""The k best of many rows: those with the smallest scores, and of equal scores those with the smallest numbers."""

from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Rows that may be in the sample, as columns."""

    scores: np.ndarray  # float64
    ids: np.ndarray  # int64
    log_weights: np.ndarray  # float64
    items: np.ndarray  # objects

    def at(self, places: np.ndarray | slice) -> "Rows":
        """Some of the rows."""
        return Rows(*(column[places] for column in self))

    @staticmethod
    def none() -> "Rows":
        """No rows."""
        return Rows(np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty(0, object))


def joined(*parts: Rows) -> Rows:
    """The rows of several parts."""
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def smallest(rows: Rows, k: int) -> np.ndarray:
    """Places of the k best rows, or of all if there are fewer, in any order."""
    if len(rows.ids) <= k:
        return np.arange(len(rows.ids))
    if k == 0:
        return np.arange(0)
    worst = np.partition(rows.scores, k - 1)[k - 1]
    better, equal = np.flatnonzero(rows.scores < worst), np.flatnonzero(rows.scores == worst)
    return np.concatenate([better, equal[np.argsort(rows.ids[equal])][: k - len(better)]])


def in_order(rows: Rows) -> Rows:
    """The rows, the best first."""
    return rows.at(np.lexsort((rows.ids, rows.scores)))
