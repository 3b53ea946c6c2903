"""Calling a model of which nothing is known but its outputs."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from khot.errors import BlackBoxError
from khot.explain.maskers.items import take

PredictProba = Callable[[Any], Any]
"""Rows to the probabilities (n, classes) of the classes."""

_OFF_BY = 1e-3  # what the probabilities of a row may miss from 1: they may come from half precision


def outputs(predict_proba: PredictProba, X: Any, batch_size: int) -> NDArray[np.float32]:  # noqa: N803
    """The probabilities (n, classes) of all rows, in calls of at most `batch_size` rows, checked."""
    from tqdm import tqdm

    rows = len(X)
    starts = tqdm(range(0, rows, batch_size), desc="black box", unit="batch", disable=not sys.stderr.isatty())
    found: list[NDArray[np.float32]] = []
    for start in starts:
        stop = min(start + batch_size, rows)
        where = f"for rows {start} to {stop - 1}"
        try:
            answer = predict_proba(take(X, slice(start, stop)))
        except Exception as error:
            raise BlackBoxError(
                f"predict_proba raised {type(error).__name__} {where}: {error}: "
                "call it with these rows yourself to see why"
            ) from error
        found.append(_checked(answer, stop - start, found[0].shape[1] if found else None, where))
    return np.concatenate(found)


def _checked(answer: Any, rows: int, classes: int | None, where: str) -> NDArray[np.float32]:
    answer = answer.detach().cpu().float().numpy() if hasattr(answer, "detach") else answer
    try:
        values = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BlackBoxError(f"predict_proba must return numbers, but {error} {where}: return an array") from error
    if (
        values.ndim != 2
        or len(values) != rows
        or values.shape[1] < 2
        or values.shape[1] != (classes or values.shape[1])
    ):
        wanted = f"({rows}, {classes or 'classes'})"
        raise BlackBoxError(
            f"predict_proba must return shape {wanted} with at least two classes, but got {values.shape} {where}: "
            "for one probability p a row, return the two columns 1 - p and p"
        )
    if not np.isfinite(values).all():
        raise BlackBoxError(
            f"predict_proba must return finite numbers, but got NaN or infinity {where}: look at these rows"
        )
    off = np.abs(values.sum(1) - 1).max()
    if values.min() < -_OFF_BY or off > _OFF_BY:
        raise BlackBoxError(
            f"predict_proba must return probabilities that sum to 1, but got a row from {values.min():.3g} "
            f"or a sum off by {off:.3g} {where}: apply a softmax to logits"
        )
    return values
