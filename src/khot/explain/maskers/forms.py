"""Forms of rows that users pass and models take: arrays, tensors, data frames, lists."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot._estimators.inputs import as_array
from khot.errors import InvalidTypeError, InvalidValueError, one_line


def data_frame(X: Any) -> Any:  # noqa: N803
    """The narwhals frame of a data frame of any package; None for anything else."""
    if isinstance(X, np.ndarray):  # the most common form, without the cost of narwhals
        return None
    import narwhals
    from narwhals.exceptions import DuplicateError

    try:
        found = narwhals.from_native(X, eager_only=True, pass_through=True)
        names = found.columns if isinstance(found, narwhals.DataFrame) else []
    except (DuplicateError, ValueError) as error:
        raise InvalidValueError(
            f"columns of a data frame must have different names, but {one_line(error)}: rename some"
        ) from error
    return found if names else None


def must_be_dense(name: str, X: Any) -> None:  # noqa: N803
    """Refuse sparse rows."""
    if hasattr(X, "toarray") or (isinstance(X, Tensor) and X.layout != torch.strided):
        convert = ".to_dense()" if isinstance(X, Tensor) else ".toarray()"
        raise InvalidTypeError(f"{name} must be dense, but got a {type(X).__name__}: convert it with {convert}")


def array(name: str, X: Any) -> np.ndarray:  # noqa: N803
    """Rows as an array. Error messages call them `name`."""
    must_be_dense(name, X)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidValueError(
            f"{name} must have all their values, but some are masked: fill them in, or drop these rows"
        )
    try:
        return as_array(X) if isinstance(X, Tensor) else np.asarray(X)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidTypeError(
            f"{name} must be rows of one shape, but {error}: pass an array, with rows of equal length"
        ) from error


def same_shape(name: str, rows: np.ndarray, shape: list[int], hint: str) -> np.ndarray:
    """Refuse rows of another shape than those of `fit`."""
    if list(rows.shape[1:]) != shape:
        raise InvalidValueError(f"{name} must have shape {tuple(shape)} as in fit, but got {rows.shape[1:]}: {hint}")
    return rows


def is_listing(value: Any) -> bool:
    """Whether a value is a sequence, which texts, sets and tables are not."""
    return (
        isinstance(value, Iterable) and not isinstance(value, str | bytes | Set | Mapping) and data_frame(value) is None
    )


def replaced(X: Any, kept: np.ndarray, baseline: Any) -> Any:  # noqa: N803
    """Rows with the baseline where they are not kept; `kept` and `baseline` broadcast to the shape of the rows.

    The result has the form of X (array, tensor, data frame or list), and its type of numbers if that can hold the
    baseline, or else floating-point numbers.

    >>> replaced(np.array([[1, 2]]), np.array([[True, False]]), 0)
    array([[1, 0]])
    >>> replaced([[1, 2]], np.array([[True, False]]), 0.5)
    [[1.0, 0.5]]
    """
    baseline = np.asarray(baseline, dtype=np.float64)
    if isinstance(X, list | tuple):
        return _replaced_list(X, kept, baseline)
    if isinstance(X, Tensor):
        return _replaced_tensor(X.detach(), kept, baseline)
    frame = data_frame(X)
    return _replaced_array(np.asarray(X), kept, baseline) if frame is None else _replaced_frame(frame, kept, baseline)


def texts_like(X: Any, texts: list[str]) -> Any:  # noqa: N803
    """Texts in the form of X: a series, an array or a list."""
    if isinstance(X, np.ndarray):
        return np.array(texts, dtype=X.dtype if X.dtype.kind in "OT" else np.str_)
    if hasattr(X, "iloc"):
        return type(X)(texts, index=X.index, name=X.name, dtype=None if X.dtype == "category" else X.dtype)
    import narwhals

    series = narwhals.from_native(X, series_only=True, pass_through=True)
    if not isinstance(series, narwhals.Series):
        return texts
    return narwhals.new_series(series.name, texts, backend=series.implementation).to_native()


def _replaced_list(X: Any, kept: np.ndarray, baseline: np.ndarray) -> list[Any]:  # noqa: N803
    if isinstance(X[0], Tensor):
        return list(_replaced_tensor(torch.stack(list(X)).detach(), kept, baseline))
    values = _replaced_array(np.asarray(X), kept, baseline)
    return list(values) if isinstance(X[0], np.ndarray) else values.tolist()


def _replaced_tensor(X: Tensor, kept: np.ndarray, baseline: np.ndarray) -> Tensor:  # noqa: N803
    dtype = X.dtype if _fits(baseline, as_array(X[:0]).dtype) else torch.get_default_dtype()
    filler = torch.as_tensor(baseline).to(dtype).to(X.device)
    return torch.where(torch.tensor(np.asarray(kept, dtype=bool), device=X.device), X.to(dtype), filler)


def _replaced_frame(frame: Any, kept: np.ndarray, baseline: np.ndarray) -> Any:
    import narwhals

    baseline, columns = np.broadcast_to(baseline, len(frame.columns)), []
    for column, flags, value in zip(frame.iter_columns(), kept.T, baseline, strict=True):
        values = _replaced_array(column.to_numpy(), flags, value)
        columns.append(narwhals.new_series(column.name, values, backend=frame.implementation))
    return frame.with_columns(*columns).to_native()


def _replaced_array(X: np.ndarray, kept: np.ndarray, baseline: np.ndarray) -> np.ndarray:  # noqa: N803
    return np.where(kept, X, baseline.astype(X.dtype) if _fits(baseline, X.dtype) else baseline)


def _fits(baseline: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers of a type can hold the baseline."""
    if dtype.kind == "O":
        return True
    if dtype.kind == "f":
        return bool((abs(baseline) <= np.finfo(dtype).max).all())
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(((least <= baseline) & (baseline < most + 1.0) & (baseline == np.rint(baseline))).all())
