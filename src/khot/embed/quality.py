"""Measures of how well an embedding preserves neighbours, exact and in bounded memory.

Among equal distances, the point with the smaller index counts as nearer. Squared distances are computed in float64;
relative differences below 1e-12 are ignored as rounding errors.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot import _checks
from khot._estimators.distances import careful_distances
from khot._estimators.inputs import as_array
from khot.errors import InvalidValueError

_NUMBERS = "biuf"
MEMORY = 2**28  # bytes for a table of distances
_LOST_BITS = 2**11 - 1  # mask of the last 11 of 52 bits, which are rounded off a squared distance


def trustworthiness(X: Any, embedding: Any, n_neighbors: int = 12, memory: int = MEMORY) -> float:  # noqa: N803
    """Share of neighbours in the embedding that are neighbours in the input space, weighted by rank.

    ``1 - 2 / (n k (2n - 3k - 1)) * sum_i sum_j max(0, r(i, j) - k)`` over the k nearest j of each i in the embedding,
    where r(i, j) is the rank of j among the neighbours of i in the input space.

    Parameters
    ----------
    X : array, sparse array or Tensor, shape (n, d)
        Rows in the input space.
    embedding : array or Tensor, shape (n, e)
        The same rows in the embedding.
    n_neighbors : int
        Number k of neighbours, less than n / 2.
    memory : int
        Bytes for tables of distances.

    Returns
    -------
    float
        Number from 0 to 1; 1 if all neighbours in the embedding are neighbours in the input space.

    Examples
    --------
    >>> rows = [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [6.0, 0.0], [10.0, 0.0]]
    >>> trustworthiness(rows, [[0.0], [1.0], [3.0], [6.0], [10.0]], 1)
    1.0
    >>> round(trustworthiness(rows, [[0.0], [6.0], [3.0], [1.0], [10.0]], 1), 4)
    0.3333

    Notes
    -----
    `sklearn.manifold.trustworthiness` computes the same with n² numbers in memory, and breaks ties at random.

    References
    ----------
    Venna & Kaski, "Visualizing gene interaction graphs with local multidimensional scaling", 2006.
    """
    rows, points = _points("X", X), _points("embedding", embedding)
    memory = _checks.whole_number("memory", memory, least=1)
    n, k = len(rows), _checks.whole_number("n_neighbors", n_neighbors, least=1)
    if len(points) != n:
        raise InvalidValueError(
            f"X and embedding must have the same number of rows, but got {n} and {len(points)}: pass the same rows"
        )
    if 2 * k >= n:
        raise InvalidValueError(f"n_neighbors must be less than n / 2 = {n / 2:g}, but got {k}: choose fewer")
    excess = 0
    tables = zip(*(_tables(part, part, memory, itself=True) for part in (rows, points)), strict=True)
    for here, there in tables:
        ranks = _ranks(here, _nearest(there, k))
        excess += int((ranks - k).clamp_min(0).sum())
    return 1 - 2 / (n * k * (2 * n - 3 * k - 1)) * excess


def continuity(X: Any, embedding: Any, n_neighbors: int = 12, memory: int = MEMORY) -> float:  # noqa: N803
    """Share of neighbours in the input space that are neighbours in the embedding, weighted by rank.

    Parameters
    ----------
    X, embedding, n_neighbors, memory
        As for `trustworthiness`, with the two spaces exchanged.

    Returns
    -------
    float
        Number from 0 to 1; 1 if all neighbours in the input space are neighbours in the embedding.

    Examples
    --------
    >>> rows = [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [6.0, 0.0], [10.0, 0.0]]
    >>> continuity(rows, [[0.0], [1.0], [3.0], [6.0], [10.0]], 1)
    1.0
    """
    return trustworthiness(embedding, X, n_neighbors, memory)


def knn_error(
    references: Any,
    reference_labels: Any,
    queries: Any,
    labels: Any,
    n_neighbors: int = 1,
    memory: int = MEMORY,
) -> float:
    """Percentage of queries for which the majority of the nearest references has a wrong label.

    Parameters
    ----------
    references : array or Tensor, shape (n, d)
        Points with known labels, such as the embedding of the training rows.
    reference_labels : array or Tensor, shape (n,)
        Their labels.
    queries : array or Tensor, shape (q, d)
        Points to classify.
    labels : array or Tensor, shape (q,)
        True labels of the queries.
    n_neighbors : int
        Number of references that vote. Among labels with equally many votes, the smallest wins.
    memory : int
        Bytes for tables of distances.

    Returns
    -------
    float
        Percentage from 0 to 100.

    Examples
    --------
    >>> knn_error([[0.0], [5.0]], ["a", "b"], [[1.0], [2.0], [4.0], [9.0]], ["a", "b", "b", "b"])
    25.0
    """
    known, asked = _points("references", references), _points("queries", queries)
    given, right = _labels("references", reference_labels, len(known)), _labels("queries", labels, len(asked))
    if (given.dtype.kind in _NUMBERS) != (right.dtype.kind in _NUMBERS):
        raise InvalidValueError(
            f"labels of references and queries must both be numbers, or both texts, but got {given.dtype} and "
            f"{right.dtype}: convert one of them"
        )
    if known.shape[1] != asked.shape[1]:
        raise InvalidValueError(
            "references and queries must have the same number of columns, "
            f"but got {known.shape[1]} and {asked.shape[1]}: embed both with one model"
        )
    _checks.whole_number("n_neighbors", n_neighbors, least=1, most=len(known))
    memory = _checks.whole_number("memory", memory, least=1)
    classes, numbers = np.unique(given, return_inverse=True)
    votes = torch.from_numpy(numbers)
    winners = [_majority(votes[_nearest(table, n_neighbors)], len(classes)) for table in _tables(asked, known, memory)]
    return 100 * float((classes[torch.cat(winners).numpy()] != right).mean())


def _points(name: str, value: Any) -> Tensor:
    value = as_array(value)
    try:
        array = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
        if array.dtype.kind == "c":
            raise TypeError("it has complex ones")
        array = array.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidValueError(f"{name} must have numbers in rows of the same length ({error}): encode it") from error
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidValueError(f"{name} must have shape (rows, columns), but got {array.shape}: reshape it")
    if not np.isfinite(array).all():
        raise InvalidValueError(f"{name} must be finite, but got NaN or infinity: fill in or leave out such rows")
    return torch.from_numpy(array)


def _labels(whose: str, value: Any, rows: int) -> np.ndarray:
    try:
        labels = np.asarray(as_array(value))
        labels = np.array(labels.tolist()) if labels.dtype == object else labels
        labels = labels.astype(str) if labels.dtype.kind == "S" else labels
        if labels.dtype.kind not in _NUMBERS + "U":
            raise ValueError(f"got {labels.dtype}")
    except ValueError as error:
        raise InvalidValueError(f"labels of the {whose} must be numbers or texts ({error}): convert them") from error
    if labels.shape != (rows,):
        raise InvalidValueError(
            f"the labels of the {whose} must have shape ({rows},), but got {labels.shape}: pass one for each row"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InvalidValueError(f"the labels of the {whose} must not be NaN: leave out rows without a label")
    return labels


def _tables(queries: Tensor, references: Tensor, memory: int, itself: bool = False) -> Iterator[Tensor]:
    """Squared distances, some queries at a time. With `itself`, those of a point to itself are infinite."""
    queries, references = _near_origin(queries, references)
    squares, size = references.square().sum(1), max(1, memory // (40 * len(references)))
    for start in range(0, len(queries), size):
        table = careful_distances(queries[start : start + size], references, squares)
        table = ((table.view(torch.int64) + (_LOST_BITS + 1) // 2) & ~_LOST_BITS).view(torch.float64)
        if itself:
            table.diagonal(start).fill_(torch.inf)
        yield table


def _near_origin(queries: Tensor, references: Tensor) -> list[Tensor]:
    """Points in other units and relative to their median, so that squares do not overflow and cancel less.

    The median does not depend on outliers. Whole numbers become multiples of a power of two, whose squares are exact.
    """
    largest = max(float(points.abs().amax()) for points in (queries, references))
    unit = 2.0 ** -min(max(math.frexp(largest)[1], -1000), 1000)
    centre = (references * unit).median(0).values  # an entry of the references
    return [points * unit - centre for points in (queries, references)]


def _nearest(table: Tensor, k: int) -> Tensor:
    """The k nearest (q, k) of each row, ordered by index."""
    reach = table.topk(k, largest=False).values.amax(1, keepdim=True)
    nearer, level = table < reach, table == reach
    spare = k - nearer.sum(1, keepdim=True)
    taken = nearer | (level & (level.cumsum(1) <= spare))
    return taken.nonzero()[:, 1].reshape(len(table), k)


def _ranks(table: Tensor, chosen: Tensor) -> Tensor:
    """Ranks (q, k), from 1, of the chosen entries of each row."""
    index = torch.arange(table.shape[1])

    def rank(value: Tensor, place: Tensor) -> Tensor:
        return 1 + (table < value).sum(1) + ((table == value) & (index < place)).sum(1)

    values = table.gather(1, chosen)
    return torch.stack([rank(values[:, [j]], chosen[:, [j]]) for j in range(chosen.shape[1])], 1)


def _majority(votes: Tensor, classes: int) -> Tensor:
    """Class with most votes in each row, the smallest of several."""
    return torch.zeros(len(votes), classes).scatter_add_(1, votes, torch.ones(votes.shape)).argmax(1)
