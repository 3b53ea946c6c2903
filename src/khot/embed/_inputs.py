"""Rows as float32 batches for an encoder, whether they are dense or sparse, in memory or on disk."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from khot._estimators.encoding import encode
from khot._estimators.inputs import validated
from khot._estimators.scaling import Scaling
from khot.embed.networks import SigmoidNet
from khot.errors import InvalidValueError

MEMORY = 2**24  # bytes of float64 rows that are read together
ROWS = 1024  # encoded together
_DTYPES = [np.dtype(kind) for kind in "?bBhHiIlLqQefd"]  # that torch supports, too


def checked(estimator: Any, X: Any, reset: bool) -> Any:  # noqa: N803
    """Rows (n, d), as a CSR matrix if they are sparse. A memory-mapped array is not loaded."""
    options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    X = validated(estimator, X, reset=reset, ensure_min_samples=2 if reset else 1, **options)  # noqa: N806
    if X.dtype not in _DTYPES:
        X = X.astype(np.float64)  # noqa: N806
    for piece in pieces(X):
        if not np.isfinite(piece).all():
            what = "NaN" if np.isnan(piece).any() else "infinity"
            raise InvalidValueError(f"Input X contains {what}: fill in or leave out such rows")
    return X


def pieces(X: Any, rows: int | None = None) -> Iterator[np.ndarray]:  # noqa: N803
    """Rows as dense arrays, some at a time."""
    size = rows or max(1, MEMORY // (8 * X.shape[1]))
    for start in range(0, X.shape[0], size):
        yield dense(X[start : start + size])


def dense(X: Any) -> np.ndarray:  # noqa: N803
    """Contiguous array of rows, which may be sparse."""
    return X.toarray() if hasattr(X, "toarray") else np.ascontiguousarray(X)


def embed(encoder: nn.Module, X: Any, scaling: Scaling) -> NDArray[np.float32]:  # noqa: N803
    """Points of rows. khot's own encoders compute in float64 where the device can."""
    in_double = isinstance(encoder, SigmoidNet) and next(encoder.parameters()).device.type != "mps"
    points = encode(encoder, pieces(X, ROWS), scaling, in_double).numpy()
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(1))[0])
        raise InvalidValueError(f"row {row} of X lies too far from those of fit to have a finite place: leave it out")
    return points
