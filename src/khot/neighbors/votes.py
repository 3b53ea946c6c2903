"""Votes of neighbours for classes."""

import numpy as np
from numpy.typing import NDArray


def shares(labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """Share (q, classes) of each class among the labels (q, k) of the neighbours.

    >>> shares(np.array([[0, 2, 2, 2]]), classes=3)
    array([[0.25, 0.  , 0.75]])
    """
    counts = np.zeros((len(labels), classes))
    np.add.at(counts, (np.arange(len(labels))[:, None], labels), 1.0)
    return counts / labels.shape[1]


def winners(labels: NDArray[np.int64], distances: NDArray[np.float32], classes: int) -> NDArray[np.int64]:
    """Class (q,) with most votes. Ties go to the class with the nearest neighbour, then to the smallest.

    >>> winners(np.array([[1, 0, 0, 1]]), np.array([[0.5, 1, 1, 2]]), classes=2)
    array([1])
    """
    counts = shares(labels, classes)
    closest = np.full(counts.shape, np.inf)
    np.minimum.at(closest, (np.arange(len(labels))[:, None], labels), distances)
    return np.where(counts == counts.max(1, keepdims=True), closest, np.inf).argmin(1)


def decided_shares(labels: NDArray[np.int64], distances: NDArray[np.float32], classes: int) -> NDArray[np.float64]:
    """Shares (q, classes), where the winner of a tie gets 1e-9 more.

    >>> decided_shares(np.array([[1, 0, 0, 1]]), np.array([[0.5, 1, 1, 2]]), classes=2).argmax(1)
    array([1])
    """
    found = shares(labels, classes)
    tied = np.flatnonzero((found == found.max(1, keepdims=True)).sum(1) > 1)
    found[tied, winners(labels[tied], distances[tied], classes)] += 1e-9
    found[tied] /= 1 + 1e-9
    return found
