"""Exact k nearest references of each query, in bounded memory."""

import torch
from torch import Tensor

from khot import _checks
from khot.errors import InvalidValueError

MEMORY = 2**28  # bytes for a table of distances
_SPARE = 16  # candidates beyond k, so that rounding errors and ties rarely matter
_TOLERANCE = 1.001  # factor beyond the error of a distance in float32
_ERROR = 1e-12  # of a squared distance in float64, relative to the squares that it is computed from


def nearest(queries: Tensor, references: Tensor, k: int, memory: int = MEMORY) -> tuple[Tensor, Tensor]:
    """Find the k nearest references of each query, the nearest first.

    Parameters
    ----------
    queries : Tensor, shape (q, d)
        Points whose neighbours are searched.
    references : Tensor, shape (n, d)
        Points among which they are searched, on the same device.
    k : int
        Number of neighbours, between 1 and n.
    memory : int
        Bytes for tables of distances.

    Returns
    -------
    distances : Tensor, shape (q, k)
        Euclidean distances, in float64 if the queries or the references are, else in float32.
    indices : int64 Tensor, shape (q, k)
        Indices of references. Among equal distances in that dtype, the smaller index comes first.

    Examples
    --------
    >>> import torch
    >>> nearest(torch.tensor([[0.0], [9.0]]), torch.tensor([[5.0], [1.0], [-1.0]]), k=2)
    (tensor([[1., 1.],
            [4., 8.]]), tensor([[1, 2],
            [0, 1]]))
    """
    n, d = _finite("references", references).shape
    if _finite("queries", queries).shape[1] != d:
        raise InvalidValueError(
            f"queries must have {d} features like the references, but got {queries.shape[1]}: check both"
        )
    if _checks.whole_number("k", k, least=1) > n:
        raise InvalidValueError(f"k must be at most the number of references, {n}, but got {k}: choose a smaller one")
    _checks.whole_number("memory", memory, least=1)
    centre = references.mean(0, dtype=torch.float64)
    rows = max(1, min(1024, memory // (24 * (k + _SPARE) * d)))
    pieces = [_nearest(piece, references, centre, k, memory) for piece in queries.split(rows)]
    return torch.cat([distances for distances, _ in pieces]), torch.cat([indices for _, indices in pieces])


def matrix(name: str, value: Tensor) -> Tensor:
    """Floating-point tensor of rows."""
    if _checks.float_tensor(name, value).ndim != 2 or len(value) == 0:
        raise InvalidValueError(f"{name} must have shape (rows, features), but got {tuple(value.shape)}: flatten it")
    return value


def _finite(name: str, value: Tensor) -> Tensor:
    if not matrix(name, value).isfinite().all():
        raise InvalidValueError(f"{name} must be finite, but some are NaN or infinite: leave out such rows")
    return value


def _nearest(queries: Tensor, references: Tensor, centre: Tensor, k: int, memory: int) -> tuple[Tensor, Tensor]:
    kept = min(len(references), k + _SPARE)
    candidates, beyond, errors = _candidates(queries, references, centre, kept, memory)
    candidates = candidates.sort().values
    distances, order = _distances(queries, references[candidates]).sort(stable=True)
    distances, indices = distances[:, :k].clone(), candidates.gather(1, order[:, :k])
    if kept < len(references):
        # Where other references may be as near as the k-th, as with many copies of one reference, search all.
        reach = distances[:, -1].nextafter(distances.new_tensor(torch.inf)).double()  # farther ones round to more
        unsure = beyond - errors <= reach.square()
        for row in unsure.nonzero()[:, 0].tolist():
            distances[row], indices[row] = _nearest_of_all(queries[row], references, k, reach[row], memory)
    return distances, indices


def _candidates(
    queries: Tensor, references: Tensor, centre: Tensor, kept: int, memory: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The `kept` nearest up to the errors of |a|² + |b|² - 2ab, a lower bound for all others, and those errors."""
    queries = queries.double() - centre  # cancellation is smaller near the origin
    values, indices = queries.new_empty(len(queries), 0), queries.new_empty((len(queries), 0), dtype=torch.long)
    size, longest = max(kept, memory // (24 * max(queries.shape))), queries.new_zeros(())
    for start in range(0, len(references), size):
        piece = references[start : start + size].double() - centre
        squares = piece.square().sum(1)
        longest = torch.maximum(longest, squares.amax())
        found, places = torch.addmm(squares, queries, piece.T, alpha=-2).topk(min(kept, len(piece)), largest=False)
        values, indices = torch.cat([values, found], 1), torch.cat([indices, places + start], 1)
        values, places = values.topk(min(kept, values.shape[1]), largest=False)
        indices = indices.gather(1, places)
    own = queries.square().sum(1)
    return indices, values.amax(1) + own, _ERROR * (own + longest)


def _nearest_of_all(query: Tensor, references: Tensor, k: int, reach: Tensor, memory: int) -> tuple[Tensor, Tensor]:
    """The k nearest references of one query, all of which are within `reach`."""
    size, distances, indices = max(1, memory // (24 * len(query))), [], []
    for start, piece in zip(range(0, len(references), size), references.split(size), strict=True):
        rough = torch.cdist(query[None].double(), piece.double(), compute_mode="donot_use_mm_for_euclid_dist")[0]
        near = (rough <= reach * _TOLERANCE).nonzero()[:, 0]
        distances.append(_distances(query[None], piece[None, near])[0])
        indices.append(near + start)
    nearest_first, order = torch.cat(distances).sort(stable=True)
    return nearest_first[:k], torch.cat(indices)[order[:k]]


def _distances(queries: Tensor, references: Tensor) -> Tensor:
    """Distances (q, m) of each query (q, d) to its own references (q, m, d), computed in float64."""
    distances = (references.double() - queries.double().unsqueeze(1)).square().sum(-1).sqrt()
    return distances if torch.float64 in (queries.dtype, references.dtype) else distances.float()
