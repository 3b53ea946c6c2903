"""Whatever rows come in, dense or sparse, in memory or on disk, an encoder gets float32 rows, a few at a time."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from khot._estimators.fitting import as_array, in_one_line
from khot._estimators.scaling import mean_and_spread, one_for_zero
from khot.embed.encoders import SigmoidNet
from khot.errors import InvalidTypeError, InvalidValueError

_MEMORY = 2**24  # bytes of float64 rows looked at together
_ROWS = 1024  # embedded together
_MOST_OF_ALL = 0.9  # of all squared distances
_CROWDED = 0.01  # of the spread
_PAIRED = 2000  # rows of which distances are looked at
_FEW = 10  # pairs from which nothing can be told
_DTYPES = [np.dtype(kind) for kind in "?bBhHiIlLqQefd"]  # that torch takes, too
SCALES = ("auto", "columns", "raw")


@dataclass(frozen=True)
class Shift:
    """Rows minus a mean, divided by one number for all columns, so that what is near stays near, or by one for each."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]  # shape (d,) or ()

    def __call__(self, raw: Tensor) -> Tensor:
        """float32 rows; numbers that float32 cannot tell apart are only rounded when the mean is off."""
        dtype = torch.float32 if raw.dtype == torch.float32 or raw.dtype.itemsize < 4 else torch.float64
        mean, scale = (torch.as_tensor(part, dtype=dtype, device=raw.device) for part in (self.mean, self.scale))
        return ((raw.to(dtype) - mean) / scale).float()


def checked(estimator: Any, X: Any, reset: bool) -> Any:  # noqa: N803
    """Rows (n, d), a CSR matrix if they are sparse; a memory-mapped array stays where it is."""
    try:
        X = validate_data(  # noqa: N806
            estimator,
            as_array(X),
            reset=reset,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite=False,  # pyright: ignore[reportArgumentType]
            ensure_min_samples=2 if reset else 1,
        )
    except ValueError as error:
        raise InvalidValueError(in_one_line(error)) from error
    except TypeError as error:
        raise InvalidTypeError(f"X must be a table of numbers ({in_one_line(error)}): encode it") from error
    if X.dtype not in _DTYPES:
        X = X.astype(np.float64)  # noqa: N806
    for piece in pieces(X):
        if not np.isfinite(piece).all():
            what = "NaN" if np.isnan(piece).any() else "infinity"
            raise InvalidValueError(f"Input X contains {what}: fill in or leave out such rows")
    return X


def pieces(X: Any, rows: int | None = None) -> Iterator[np.ndarray]:  # noqa: N803
    """The rows, some at a time, as dense arrays."""
    size = rows or max(1, _MEMORY // (8 * X.shape[1]))
    for start in range(0, X.shape[0], size):
        yield dense(X[start : start + size])


def dense(X: Any) -> np.ndarray:  # noqa: N803
    """Rows as an array, sparse or not, in the order that torch takes."""
    return X.toarray() if hasattr(X, "toarray") else np.ascontiguousarray(X)


def learn_shift(X: Any, scale: str, names: Sequence[str] | None = None) -> Shift:  # noqa: N803
    """The mean and the root mean square distance from it in all columns or in each, or with "raw" nothing of it.

    Warns if a few rows lie so far out that they make it alone, or if one column, by its name or number, outweighs all
    others together by far.
    """
    if scale == "raw":
        _must_fit(max(max(-float(piece.min()), float(piece.max())) for piece in pieces(X)), X.shape[1])
        return Shift(np.zeros(X.shape[1]), np.ones(()))
    mean, spread = mean_and_spread(lambda: pieces(X))
    shares = np.square(spread / (spread.max() or 1.0))  # which neither overflow nor vanish
    shift = Shift(mean, one_for_zero(spread if scale == "columns" else np.sqrt(shares.mean()) * spread.max()))
    if (typical := _typical_distance(X, shift)) < _CROWDED:
        _warn_of_outliers(typical)
    elif scale == "auto":
        _warn_of_one_column(shares / (shares.sum() or 1.0), names)
    return shift


def _typical_distance(X: Any, shift: Shift) -> float:  # noqa: N803
    """The median distance of different rows, in units of the root mean square one, from some pairs of them."""
    n, d = X.shape
    some = min(n, _PAIRED, max(2 * _FEW + 2, _MEMORY // (8 * d)))
    chosen = np.random.default_rng(0).choice(n, some, replace=False)
    places, back = np.unique(chosen, return_inverse=True)  # in the order of the file
    rows = ((dense(X[places]) - shift.mean) / shift.scale)[back]
    half = len(rows) // 2
    distances = np.sqrt(np.square(rows[:half] - rows[half : 2 * half]).mean(1) / 2)
    different = distances[distances > 0]
    return float(np.median(different)) if len(different) > _FEW else 1.0


def _warn_of_outliers(typical: float) -> None:
    warnings.warn(
        f"half of the rows lie within {100 * typical:.1g}% of the spread of all, which a few rows far out make: the "
        "map would hardly tell the others apart; leave out such rows, clip them, or take logarithms",
        stacklevel=5,
    )


def _warn_of_one_column(shares: np.ndarray, names: Sequence[str] | None) -> None:
    share, place = float(shares.max()), int(shares.argmax())
    if share > _MOST_OF_ALL and len(shares) > 2:
        name = f"{place} (from 0)" if names is None else repr(names[place])
        warnings.warn(
            f"column {name} alone makes {100 * share:.1f}% of the squared distances between rows: if the columns have "
            "different units, bring them to the same spread (scale='columns', --scale columns)",
            stacklevel=5,
        )


def _must_fit(largest: float, columns: int) -> None:
    """Refuse numbers whose distances single precision cannot hold."""
    if not 4 * columns * largest * largest < float(np.finfo(np.float32).max):
        raise InvalidValueError(
            f"X must have squared distances below 1e38 with scale='raw', but got numbers up to {largest:g}: "
            "divide it, or pass scale='auto'"
        )


def principal_axes(X: Any, shift: Shift, count: int | None) -> Tensor | None:  # noqa: N803
    """Directions (d, count) in which the rows vary most, from some rows at a time; None if they are not wanted."""
    if count is None:
        return None
    from sklearn.decomposition import IncrementalPCA

    found: Any = IncrementalPCA(count)
    size = max(_ROWS, 2 * count)
    starts = range(0, max(1, X.shape[0] - size + 1), size)
    for start in starts:  # the last piece takes the rest too, which may be fewer rows than there are axes
        piece = X[start:] if start == starts[-1] else X[start : start + size]
        found.partial_fit(shift(torch.tensor(dense(piece))).numpy())
    return torch.from_numpy(found.components_.T.astype(np.float32))


def embed(module: nn.Module, X: Any, shift: Shift, device: torch.device) -> NDArray[np.float32]:  # noqa: N803
    """What an encoder makes of rows.

    One of khot's own computes in float64, so that rounding does not depend on where a row stands.
    """
    exact = isinstance(module, SigmoidNet) and device.type != "mps"
    module = (copy.deepcopy(module).double() if exact else module).eval()
    made = []
    with torch.no_grad():
        for piece in pieces(X, _ROWS):
            rows = shift(torch.tensor(piece)).to(device)
            made.append(module(rows.double() if exact else rows).float().cpu().numpy())
    points = np.concatenate(made)
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(1))[0])
        raise InvalidValueError(f"row {row} of X lies too far from those of fit to have a finite place: leave it out")
    return points
