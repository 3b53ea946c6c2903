"""Rows and labels as arrays, or an error that says what to do."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from khot._estimators.inputs import validated
from khot.errors import InvalidTypeError, InvalidValueError

_LABELS = (bool, int, float, str, np.bool_, np.integer, np.floating)
_DTYPES = [np.float64, np.float32, np.uint8]  # others are converted to the first
_validated = partial(validated, dtype=_DTYPES, allow_nd=True, ensure_min_samples=1)


def training_rows(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
    """Rows (n, d) or images (n, height, width, channels), and labels (n,)."""
    X, y = _validated(estimator, X, y, reset=True)  # noqa: N806
    return _images(X), _labels(y)


def rows(estimator: Any, X: Any) -> np.ndarray:  # noqa: N803
    """Rows of the same shape as in `fit`."""
    return _like_fitted(estimator, _validated(estimator, X, reset=False))


def more_rows(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
    """Rows of the same shape as in `fit`, with labels of the same kind."""
    X, y = _validated(estimator, X, y, reset=False)  # noqa: N806
    if _kind(_labels(y)) != _kind(estimator.classes_):
        raise InvalidTypeError(
            f"y must have labels of the kind seen in fit, {estimator.classes_.dtype}, but got {y.dtype}: convert them"
        )
    return _like_fitted(estimator, X), y


def joined_labels(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Old and new labels in one array, if one dtype can hold all of them."""
    if old.dtype.kind in "iu" and new.dtype.kind == "f":  # whole numbers, since others are no labels
        new = np.array([int(label) for label in new])
    both = np.concatenate([old, new])
    for label, kept in zip(new.tolist(), both[len(old) :].tolist(), strict=True):
        if label != kept or (both.dtype.kind == "f") != (old.dtype.kind == "f"):
            raise InvalidValueError(
                f"y must have labels that go together with those of fit, {old.dtype}, but got {label!r}: convert them"
            )
    return both


def _kind(labels: np.ndarray) -> str:
    return {"i": "number", "u": "number", "f": "number", "U": "text", "O": "text"}.get(labels.dtype.kind, "other")


def _labels(y: Any) -> Any:
    """Refuse labels that are not classes, that could not be saved, or that mix texts and numbers."""
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{error}: pass labels of classes") from error
    text = isinstance(y[0], str)
    other = next((label for label in y if not isinstance(label, _LABELS) or isinstance(label, str) != text), None)
    if other is not None:
        raise InvalidTypeError(
            "y must have numbers, booleans or texts as labels, all of one kind, "
            f"but got {other!r} of type {type(other).__name__}: convert them"
        )
    return y


def _images(X: np.ndarray) -> np.ndarray:  # noqa: N803
    """Add a channel axis to images without one."""
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
            "prepare it in the same way as the training rows"
        )
    return X
