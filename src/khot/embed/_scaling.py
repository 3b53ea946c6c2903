"""Scaling of rows for an embedding, and warnings about rows and columns that would spoil the map."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot._estimators.scaling import Scaling, mean_and_spread, one_for_zero
from khot.embed._inputs import MEMORY, ROWS, dense, pieces
from khot.errors import InvalidValueError

SCALES = ("auto", "columns", "raw")
_DOMINANT = 0.9  # share of all squared distances
_CROWDED = 0.01  # relative to the spread
_SAMPLE = 2000  # rows in the sample of distances
_FEW = 10  # pairs, too few to judge


def learn_scaling(X: Any, scale: str, names: Sequence[str] | None = None) -> Scaling:  # noqa: N803
    """Scaling by the standard deviation over all columns ("auto") or of each ("columns"), or none ("raw").

    Warns if a few outliers determine the deviation, or if one column dominates all others together.
    """
    if scale == "raw":
        _must_fit(max(max(-float(piece.min()), float(piece.max())) for piece in pieces(X)), X.shape[1])
        return Scaling(np.zeros(X.shape[1]), np.ones(()))
    mean, spread = mean_and_spread(lambda: pieces(X))
    shares = np.square(spread / (spread.max() or 1.0))  # neither overflow nor underflow
    scaling = Scaling(mean, one_for_zero(spread if scale == "columns" else np.sqrt(shares.mean()) * spread.max()))
    if (typical := _typical_distance(X, scaling)) < _CROWDED:
        _warn_of_outliers(typical)
    elif scale == "auto":
        _warn_of_one_column(shares / (shares.sum() or 1.0), names)
    return scaling


def _typical_distance(X: Any, scaling: Scaling) -> float:  # noqa: N803
    """Median distance between rows that differ, relative to the root mean square, from a sample of pairs."""
    n, d = X.shape
    some = min(n, _SAMPLE, max(2 * _FEW + 2, MEMORY // (8 * d)))
    chosen = np.random.default_rng(0).choice(n, some, replace=False)
    places, back = np.unique(chosen, return_inverse=True)  # in the order of the file
    rows = ((dense(X[places]) - scaling.mean) / scaling.scale)[back]
    half = len(rows) // 2
    distances = np.sqrt(np.square(rows[:half] - rows[half : 2 * half]).mean(1) / 2)
    different = distances[distances > 0]
    return float(np.median(different)) if len(different) > _FEW else 1.0


def _warn_of_outliers(typical: float) -> None:
    warnings.warn(
        f"half of the rows lie within {100 * typical:.1g}% of the spread of all rows, because a few lie far out: the "
        "map would hardly separate the others; leave out such rows, clip them, or take logarithms",
        stacklevel=5,
    )


def _warn_of_one_column(shares: np.ndarray, names: Sequence[str] | None) -> None:
    share, place = float(shares.max()), int(shares.argmax())
    if share > _DOMINANT and len(shares) > 2:
        name = f"{place} (from 0)" if names is None else repr(names[place])
        warnings.warn(
            f"column {name} alone accounts for {100 * share:.1f}% of the squared distances between rows: if the "
            "columns have different units, scale each to the same spread (scale='columns', --scale columns)",
            stacklevel=5,
        )


def _must_fit(largest: float, columns: int) -> None:
    """Refuse numbers whose squared distances overflow in float32."""
    if not 4 * columns * largest * largest < float(np.finfo(np.float32).max):
        raise InvalidValueError(
            f"X must have squared distances below 1e38 with scale='raw', but got numbers up to {largest:g}: "
            "divide it, or pass scale='auto'"
        )


def principal_axes(X: Any, scaling: Scaling, count: int | None) -> Tensor | None:  # noqa: N803
    """Principal components (d, count) of the scaled rows, from some rows at a time; None for no count."""
    if count is None:
        return None
    from sklearn.decomposition import IncrementalPCA

    found: Any = IncrementalPCA(count)
    size = max(ROWS, 2 * count)
    starts = range(0, max(1, X.shape[0] - size + 1), size)
    for start in starts:  # the last piece includes the rest, which may have fewer rows than there are axes
        piece = X[start:] if start == starts[-1] else X[start : start + size]
        found.partial_fit(scaling(torch.tensor(dense(piece))).numpy())
    return torch.from_numpy(found.components_.T.astype(np.float32))
