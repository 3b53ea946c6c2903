"""Whatever rows and labels come in, arrays come out, or an error that says what to do."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from khot._estimators.fitting import as_array, in_one_line
from khot.errors import InvalidTypeError, InvalidValueError, KhotError

_LABELS = (bool, int, float, str, np.bool_, np.integer, np.floating)
_DTYPES = [np.float64, np.float32, np.uint8]  # all others become the first


def training_rows(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
    """Rows (n, d) or images (n, height, width, channels), and labels (n,)."""
    X, y = _validated(estimator, as_array(X), as_array(y), reset=True)  # noqa: N806
    return _images(X), y


def rows(estimator: Any, X: Any) -> np.ndarray:  # noqa: N803
    """Rows of the shape that the estimator was fitted to."""
    return _like_fitted(estimator, _validated(estimator, as_array(X), reset=False))


def more_rows(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
    """Rows with labels, of the shape that the estimator was fitted to."""
    X, y = _validated(estimator, as_array(X), as_array(y), reset=False)  # noqa: N806
    return _like_fitted(estimator, X), y


def _validated(estimator: Any, *arrays: Any, reset: bool) -> Any:
    try:
        checked = validate_data(estimator, *arrays, reset=reset, dtype=_DTYPES, allow_nd=True, ensure_min_samples=1)
        if len(arrays) == 2:
            check_classification_targets(checked[1])
            _check_labels(checked[1])
    except KhotError:
        raise
    except ValueError as error:
        raise InvalidValueError(in_one_line(error)) from error
    except TypeError as error:
        raise InvalidTypeError(in_one_line(error)) from error
    return checked


def _check_labels(y: Any) -> None:
    """Refuse labels that could not be saved, and texts among numbers."""
    text = isinstance(y[0], str)
    other = next((label for label in y if not isinstance(label, _LABELS) or isinstance(label, str) != text), None)
    if other is not None:
        raise InvalidTypeError(
            "y must have numbers, booleans or texts as labels, all of one kind, "
            f"but got {other!r} of type {type(other).__name__}: convert them"
        )


def _images(X: np.ndarray) -> np.ndarray:  # noqa: N803
    """Images get a channel axis, tables stay."""
    if X.ndim > 4 or 0 in X.shape:
        raise InvalidValueError(
            f"X must be a table (n, d) or images (n, height, width[, channels]), but got shape {X.shape}: reshape it"
        )
    return X[..., None] if X.ndim == 3 else X


def _like_fitted(estimator: Any, X: np.ndarray) -> np.ndarray:  # noqa: N803
    X = _images(X)  # noqa: N806
    if X.shape[1:] != estimator.shape_:
        raise InvalidValueError(
            f"X must have rows of the shape seen in fit, {estimator.shape_}, but got {X.shape[1:]}: "
            "prepare it as the training rows were"
        )
    return X
