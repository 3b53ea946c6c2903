"""The model that is explained: a black box, of which only the answers to queries are known."""

import copy
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from khot import _checks
from khot._files import write_array
from khot.errors import BlackBoxError, RunFolderError, one_line
from khot.explain.maskers.forms import array, data_frame
from khot.explain.maskers.items import take

PredictProba = Callable[[Any], Any]
"""Rows to the probabilities (n, classes) of the classes."""

_TOLERANCE = 1e-2  # for the sum of the probabilities of a row, which may come from half precision
_REPEATED = 8  # cached rows that are queried again, to check that it is still the same model


@dataclass
class BlackBox:
    """A model that is queried on batches of rows; its answers are checked, and kept if there is a cache.

    Parameters
    ----------
    predict_proba : callable
        Rows to class probabilities, shape (n, classes).
    batch_size : int
        Maximum number of rows in a call.
    cache : Path, optional
        Folder for the answers. When the same rows are asked about in the same order again, only the first few of them
        are queried, and a model that answers these differently is refused.
    classes : int, optional
        Number of classes, by default as many as the first answer has.
    """

    predict_proba: PredictProba
    batch_size: int
    cache: Path | None = None
    classes: int | None = None
    _asked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        _checks.function("predict_proba", self.predict_proba, "of rows")

    def ask(self, rows: Any, what: str = "rows") -> NDArray[np.float32]:
        """Class probabilities (n, classes) of all rows. Error messages call the rows `what`."""
        return np.concatenate([*self.ask_in_batches(rows, what)])

    def ask_in_batches(self, rows: Any, what: str = "rows") -> Iterator[NDArray[np.float32]]:
        """Class probabilities batch by batch, for callers that check the first batch before the next query."""
        from tqdm import tqdm

        folder = None if self.cache is None else self.cache / f"answers-{self._asked}-{_digest(rows)}"
        self._asked += 1
        hidden = len(rows) <= self.batch_size or not sys.stderr.isatty()
        for start in tqdm(range(0, len(rows), self.batch_size), desc="model", unit="batch", disable=hidden):
            stop = min(start + self.batch_size, len(rows))
            batch, path = take(rows, slice(start, stop)), None if folder is None else folder / f"{start}-{stop}.npy"
            answers = None if path is None else self._read(path, stop - start)
            if answers is None:
                answers = _query(self.predict_proba, batch, self.classes, f"for {what} {start} to {stop - 1}")
                if path is not None:
                    write_array(path, answers)
            elif start == 0:
                again = _query(self.predict_proba, take(batch, slice(0, _REPEATED)), None, f"for the first {what}")
                _check_same(again, answers[:_REPEATED], folder)
            self.classes = answers.shape[1]
            yield answers

    def _read(self, path: Path, rows: int) -> NDArray[np.float32] | None:
        """Answers from the cache, bit for bit, or None if they are missing or damaged."""
        try:
            answers = np.load(path, allow_pickle=False)
            _probabilities(answers, rows, self.classes, "in a file")
            return answers.astype(np.float32)
        except Exception:  # np.load raises almost any for a damaged file
            return None


def _query(predict_proba: PredictProba, rows: Any, classes: int | None, where: str) -> NDArray[np.float32]:
    try:
        answer = predict_proba(_copy(rows))  # which the model may change
    except (Exception, SystemExit) as error:
        raise BlackBoxError(
            f"predict_proba raised {type(error).__name__} {where}: {one_line(error)}: "
            "call it with these rows yourself to see why"
        ) from error
    return _probabilities(answer, len(rows), classes, where)


def _copy(rows: Any) -> Any:
    if isinstance(rows, list):
        return [_copy(row) for row in rows]
    return rows.clone() if isinstance(rows, Tensor) else copy.deepcopy(rows)


def _check_same(now: NDArray[np.float32], before: NDArray[np.float32], folder: Path | None) -> None:
    if now.shape != before.shape or np.abs(now - before).max() > _TOLERANCE:
        raise RunFolderError(
            f"{folder} holds the answers of another model, which predicted {before[0].tolist()} for the first row, "
            f"but this one predicts {now[0].tolist()}: pass the same model to resume its training, or another folder"
        )


def _probabilities(answer: Any, rows: int, classes: int | None, where: str) -> NDArray[np.float32]:
    """An answer of the model as probabilities that sum to 1, or an error that says what is wrong with it."""
    try:
        found = answer.detach().cpu().float().numpy() if hasattr(answer, "detach") else np.ma.asarray(answer)
        if found.dtype.kind not in "fiub":
            raise TypeError(f"got {type(answer).__name__} of {found.dtype}")
        with np.errstate(over="ignore"):  # infinity is refused below
            values = np.asarray(np.ma.filled(found.astype(np.float32), np.nan))
    except (TypeError, ValueError, RuntimeError) as error:
        raise BlackBoxError(f"predict_proba must return numbers, but {error} {where}: return an array") from error
    if values.ndim != 2 or len(values) != rows or values.shape[1] < 2 or classes not in (None, values.shape[1]):
        raise BlackBoxError(
            f"predict_proba must return shape ({rows}, {classes or 'classes'}) with at least two classes, "
            f"but got {values.shape} {where}: for one probability p per row, return the two columns 1 - p and p"
        )
    if not np.isfinite(values).all():
        raise BlackBoxError(
            f"predict_proba must return finite numbers, but got NaN or infinity {where}: look at these rows"
        )
    error = np.abs(values.sum(1) - 1).max()
    if values.min() < -_TOLERANCE or error > _TOLERANCE:
        raise BlackBoxError(
            f"predict_proba must return probabilities that sum to 1, but got a row from {values.min():.3g} "
            f"or a sum off by {error:.3g} {where}: apply a softmax to logits"
        )
    values = values.clip(0)
    return values / values.sum(1, keepdims=True)


def _digest(rows: Any) -> str:
    """A digest of rows of any kind."""
    found = hashlib.blake2b(digest_size=8)
    for row in rows if data_frame(rows) is None else array("X", rows):
        values = array("a row", row) if isinstance(row, np.ndarray | Tensor) else np.asarray(row, dtype=object)
        text = values.dtype.kind == "O"
        found.update(repr(values.tolist()).encode(errors="surrogatepass") if text else values.tobytes())
        found.update(b"\0")
    return found.hexdigest()
