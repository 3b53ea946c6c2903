"""Calling a model of which nothing is known but its outputs."""

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from khot._files import write_array
from khot.errors import BlackBoxError, RunFolderError, one_line
from khot.explain.maskers.items import take

PredictProba = Callable[[Any], Any]
"""Rows to the probabilities (n, classes) of the classes."""

_OFF_BY = 1e-2  # what the probabilities of a row may miss from 1: they may come from half precision
_ASKED_AGAIN = 8  # rows whose answers were kept, to see whether it is still the same black box


def outputs(
    predict_proba: PredictProba,
    X: Any,  # noqa: N803
    batch_size: int,
    classes: int | None = None,
    folder: Path | None = None,
    check: Callable[[int], None] | None = None,
    what: str = "rows",
) -> NDArray[np.float32]:
    """The probabilities (n, classes) of all rows, in calls of at most `batch_size` rows, checked.

    Answers are kept in `folder`, if there is one, so that nothing but the first few rows is asked twice: RunFolderError
    if the answers are others then. `check` is called with the number of classes as soon as that is known.
    Errors call the rows `what` they are.
    """
    from tqdm import tqdm

    rows = len(X)
    quick = rows <= batch_size or not sys.stderr.isatty()
    starts = tqdm(range(0, rows, batch_size), desc="black box", unit="batch", disable=quick)
    found: list[NDArray[np.float32]] = []
    for start in starts:
        stop = min(start + batch_size, rows)
        kept = None if folder is None else folder / f"{start}-{stop}.npy"
        before = None if kept is None else _kept(kept, stop - start, classes)
        if before is not None:
            if start == 0:
                again = _ask(predict_proba, take(X, slice(0, min(stop, _ASKED_AGAIN))), None, f"for the first {what}")
                _must_be_the_same(again, before[: len(again)], kept)
            found.append(before)
        else:
            found.append(_ask(predict_proba, take(X, slice(start, stop)), classes, f"for {what} {start} to {stop - 1}"))
            if kept is not None:
                write_array(kept, found[-1])
        if start == 0 and check is not None:
            check(found[0].shape[1])
        classes = found[0].shape[1]
    return np.concatenate(found)


def _ask(predict_proba: PredictProba, rows: Any, classes: int | None, where: str) -> NDArray[np.float32]:
    try:
        answer = predict_proba(_copy(rows))  # which it may change
    except (Exception, SystemExit) as error:
        raise BlackBoxError(
            f"predict_proba raised {type(error).__name__} {where}: {one_line(error)}: "
            "call it with these rows yourself to see why"
        ) from error
    return _checked(answer, len(rows), classes, where)


def _copy(rows: Any) -> Any:
    if isinstance(rows, list):
        return [_copy(row) for row in rows]
    return rows.clone() if isinstance(rows, Tensor) else copy.deepcopy(rows)


def _kept(path: Path, rows: int, classes: int | None) -> NDArray[np.float32] | None:
    """Answers that were kept, to the bit, or None if there are none, or only damaged ones."""
    try:
        values = np.load(path, allow_pickle=False)
        _checked(values, rows, classes, "in a file")
        return values.astype(np.float32)
    except Exception:  # of a damaged file, np.load raises almost any
        return None


def _must_be_the_same(now: NDArray[np.float32], before: NDArray[np.float32], path: Any) -> None:
    if now.shape != before.shape or np.abs(now - before).max() > _OFF_BY:
        raise RunFolderError(
            f"{path.parent} holds the answers of another black box, which said {before[0].tolist()} of the first row, "
            f"but this one says {now[0].tolist()}: pass the same to go on with its training, or another folder"
        )


def _checked(answer: Any, rows: int, classes: int | None, where: str) -> NDArray[np.float32]:
    try:
        found = answer.detach().cpu().float().numpy() if hasattr(answer, "detach") else np.ma.asarray(answer)
        if found.dtype.kind not in "fiub":
            raise TypeError(f"got {type(answer).__name__} of {found.dtype}")
        with np.errstate(over="ignore"):  # infinity is told below
            values = np.asarray(np.ma.filled(found.astype(np.float32), np.nan))
    except (TypeError, ValueError, RuntimeError) as error:
        raise BlackBoxError(f"predict_proba must return numbers, but {error} {where}: return an array") from error
    if values.ndim != 2 or len(values) != rows or values.shape[1] < 2 or classes not in (None, values.shape[1]):
        raise BlackBoxError(
            f"predict_proba must return shape ({rows}, {classes or 'classes'}) with at least two classes, "
            f"but got {values.shape} {where}: for one probability p a row, return the two columns 1 - p and p"
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
    values = values.clip(0)
    return values / values.sum(1, keepdims=True)
