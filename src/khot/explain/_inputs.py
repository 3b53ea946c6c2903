"""What an explainer is given, checked."""

import hashlib
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError, RunFolderError
from khot.explain.black_box import PredictProba
from khot.explain.maskers import Columns, Items, Masker, Patches, Sentences, Tokens, Words
from khot.explain.maskers.forms import array, data_frame, must_be_dense
from khot.explain.maskers.items import take
from khot.training.folders import check_about, in_use

MASKERS = {"columns": Columns, "words": Words, "sentences": Sentences, "patches": Patches, "tokens": Tokens}


def find_masker(masker: str | Masker) -> Masker:
    """The masker of a name, or the given one."""
    if isinstance(masker, str):
        return MASKERS[_checks.choice("masker", masker, tuple(MASKERS))]()
    methods = ("fit", "encode", "mask", "pieces")
    if isinstance(masker, type) or not all(callable(getattr(masker, name, None)) for name in methods):
        raise InvalidTypeError(
            f"masker must be one of {', '.join(MASKERS)} or an object with the methods {', '.join(methods)} of "
            f"khot.explain.maskers.Masker, but got {masker!r}: make one"
        )
    return masker


def network(name: str, value: Any) -> nn.Module | None:
    """A module or None."""
    if value is not None and not isinstance(value, nn.Module):
        raise InvalidTypeError(f"{name} must be a torch.nn.Module, but got {value!r}: pass one, or None")
    if value is not None and any(map(is_lazy, [*value.parameters(), *value.buffers()])):
        raise InvalidValueError(f"{name} must have all its parameters, but {value!r} is lazy: call it with a row first")
    return value


def function(predict_proba: Any) -> PredictProba:
    """A black box."""
    if not callable(predict_proba):
        raise InvalidTypeError(
            f"predict_proba must be a function of rows, but got {predict_proba!r}: pass model.predict_proba"
        )
    return predict_proba


def count(X: Any) -> int:  # noqa: N803
    """The number of rows."""
    must_be_dense("X", X)
    try:
        take(X, slice(0, 1))
        return len(X)
    except (TypeError, KeyError, IndexError, NotImplementedError) as error:
        raise InvalidTypeError(
            f"X must be rows that can be counted and cut, but got {type(X).__name__} ({error}): "
            "pass an array, a data frame, a tensor or a list"
        ) from error


def encoded(masker: Masker, X: Any) -> Items:  # noqa: N803
    """The items of rows, as many as there are rows."""
    items = masker.encode(X)
    if not isinstance(items, Items):
        raise InvalidTypeError(
            f"the masker must encode rows as Items, but returned {items!r}: return Items(codes, present)"
        )
    codes, present = items.codes, items.present
    if not isinstance(codes, Tensor) or not isinstance(present, Tensor):
        raise InvalidTypeError(
            f"the masker must encode rows as tensors, but got {type(codes).__name__} and {type(present).__name__}: "
            "convert them with torch.as_tensor"
        )
    if not len(codes) == len(present) == len(X) or present.dtype != torch.bool or present.ndim != 2:
        raise InvalidValueError(
            f"the masker must encode the {len(X)} rows of X with a bool tensor (rows, items) of what is present, but "
            f"got {len(codes)} rows and {present.dtype} of shape {tuple(present.shape)}: pass one row for each"
        )
    return Items(codes.detach(), present)


def in_order(masker: Masker, X: Any) -> Any:  # noqa: N803
    """Rows with their columns as the black box knows them, if they came in another order."""
    arrange = getattr(masker, "in_order", None)
    return X if arrange is None else arrange(X)


def check_networks(masker: Masker, given: dict[str, nn.Module | None]) -> None:
    """Refuse a masker without the networks that were not given."""
    for name, module in given.items():
        if module is None and not callable(getattr(masker, name, None)):
            raise InvalidTypeError(
                f"{name} must be a torch.nn.Module, as {masker!r} has no method {name}, but got None: pass one"
            )


def check_unused(folder: Path, resume: bool, about: Mapping[str, Any]) -> None:
    """Refuse a folder that holds other things, or a run that shall not be resumed, before the black box is asked."""
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(f"{folder} is a file: pass a new or empty folder")
    inside = list(folder.glob("*"))
    if any(not path.name.startswith(("answers-", "search-", "training")) for path in inside):
        raise RunFolderError(f"{folder} holds other things than a run: pass a new or empty folder")
    if inside and not resume:
        raise in_use(folder)
    for run in inside:
        check_about(run, about)


def answers_folder(folder: Path | None, codes: Tensor, X: Any, draw: int = 0) -> Path | None:  # noqa: N803
    """Where the answers about rows, or about a draw of their items, are kept, if anything is: each has its own."""
    return None if folder is None else folder / f"answers-{draw}-{_digest(codes, X)}"


def _digest(codes: Tensor, X: Any) -> str:  # noqa: N803
    """Tells rows apart, also those whose differences the codes do not show."""
    found = hashlib.blake2b(codes.contiguous().numpy().tobytes(), digest_size=8)
    for row in X if data_frame(X) is None else array("X", X):
        found.update(_bytes(row) + b"\0")
    return found.hexdigest()


def _bytes(row: Any) -> bytes:
    values = array("a row", row) if isinstance(row, np.ndarray | Tensor) else np.asarray(row, dtype=object)
    return repr(values.tolist()).encode(errors="surrogatepass") if values.dtype.kind == "O" else values.tobytes()


def named_rows(value: Any, rows: int) -> list[int | str] | None:
    """As many names of rows, or None."""
    if value is None:
        return None
    names = list(value) if _is_listing(value) else value
    if not isinstance(names, list) or len(names) != rows:
        raise InvalidValueError(f"row_names must name the {rows} rows of X, but got {value!r}: pass a list of as many")
    numbers = [name.item() if isinstance(name, Tensor | np.number) and name.ndim == 0 else name for name in names]
    if all(_checks.is_integer(number) and abs(number) < 2**63 for number in numbers):
        return [int(number) for number in numbers]
    return [str(name) for name in numbers]


def named_classes(value: Any) -> list[str]:
    """Names of classes."""
    if not _is_listing(value):
        raise InvalidTypeError(f"class_names must be a sequence of names, but got {value!r}: pass a list")
    return [str(name) for name in value]


def _is_listing(value: Any) -> bool:
    """Whether this is several things one after the other, as sets and tables are not."""
    return (
        isinstance(value, Iterable) and not isinstance(value, str | bytes | Set | Mapping) and data_frame(value) is None
    )
