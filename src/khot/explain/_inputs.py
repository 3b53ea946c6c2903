"""Checks of the input of an explainer, apart from numbers: maskers, networks, rows, flags, names and folders."""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError, RunFolderError
from khot.explain.maskers import Columns, Items, Masker, Patches, Sentences, Tokens, Words
from khot.explain.maskers.forms import array, is_listing, must_be_dense
from khot.explain.maskers.items import take
from khot.training.folders import check_about, in_use

MASKERS = {"columns": Columns, "words": Words, "sentences": Sentences, "patches": Patches, "tokens": Tokens}


class Limits(NamedTuple):
    """Flags (n, items) of the items that may be chosen, and of those that always are."""

    eligible: Tensor
    forced: Tensor


def find_masker(masker: str | Masker) -> Masker:
    """A new masker of the given name, or the given masker."""
    if isinstance(masker, str):
        return MASKERS[_checks.choice("masker", masker, tuple(MASKERS))]()
    methods = ("fit", "encode", "mask", "pieces")
    if isinstance(masker, type) or not all(callable(getattr(masker, name, None)) for name in methods):
        raise InvalidTypeError(
            f"masker must be one of {', '.join(MASKERS)} or an object with the methods {', '.join(methods)} of "
            f"khot.explain.maskers.Masker, but got {masker!r}: pass an instance of a masker"
        )
    return masker


def check_network(name: str, value: Any, masker: Masker | None = None) -> None:
    """Refuse a network that is not a module, and None if the masker has no network to use instead."""
    if value is None and masker is not None and not callable(getattr(masker, name, None)):
        raise InvalidTypeError(
            f"{name} must be a torch.nn.Module, as {masker!r} has no method {name}, but got None: pass one"
        )
    if value is not None and not isinstance(value, nn.Module):
        raise InvalidTypeError(f"{name} must be a torch.nn.Module, but got {value!r}: pass one, or None")
    if value is not None and any(map(is_lazy, [*value.parameters(), *value.buffers()])):
        raise InvalidValueError(f"{name} must have all its parameters, but {value!r} is lazy: call it with a row first")


def count_rows(X: Any, least: int) -> int:  # noqa: N803
    """Number of rows, at least `least`."""
    must_be_dense("X", X)
    try:
        take(X, slice(0, 1))
        rows = len(X)
    except (TypeError, KeyError, IndexError, NotImplementedError) as error:
        raise InvalidTypeError(
            f"X must be rows that can be counted and sliced, but got {type(X).__name__} ({error}): "
            "pass an array, a data frame, a tensor or a list"
        ) from error
    if rows < least:
        raise InvalidValueError(f"X must have at least {least} row{'s' * (least > 1)}, but got {rows}: add some")
    return rows


def find_limits(items: Items, eligible: Any, forced: Any, k: int, learning: bool = False) -> Limits:
    """The limits among the items that are present. For learning, some row must have an item to choose."""
    may = items.present if eligible is None else items.present & _flags("eligible", eligible, items.present)
    must = torch.zeros_like(may) if forced is None else items.present & _flags("forced", forced, items.present)
    needed = learning or (for_all_rows(eligible) is not None and bool(items.present.any()))
    if eligible is not None and needed and not bool((may | must).any()):
        raise InvalidValueError("eligible leaves no item to choose in any row: allow some")
    most = int(must.sum(1).amax())
    if most > k:
        raise InvalidValueError(
            f"at most k = {k} items of a row can be forced, but got {most}: force fewer, or raise k"
        )
    return Limits(may, must)


def for_all_rows(flags: Any) -> list[bool] | None:
    """Flags (items,) that hold for any row, or None."""
    return None if flags is None or array("flags", flags).ndim != 1 else array("flags", flags).tolist()


def _flags(name: str, value: Any, present: Tensor) -> Tensor:
    flags = array(name, value)
    if flags.dtype != bool or flags.shape not in (tuple(present.shape), (present.shape[1],)):
        raise InvalidValueError(
            f"{name} must be a bool array of shape ({present.shape[1]},) or {tuple(present.shape)}, "
            f"but got {flags.dtype} of shape {flags.shape}: pass one flag for each item"
        )
    return torch.from_numpy(flags.copy()).expand(present.shape)


def warn_of_nothing_to_choose(limits: Limits, k: int) -> None:
    """Warn if all items of all rows are chosen, or only the forced ones."""
    wanted = k - limits.forced.sum(1)
    if bool((wanted == 0).all()):
        warnings.warn(f"all of the k = {k} items of each row are forced: raise k, or force fewer", stacklevel=4)
    elif bool(((limits.eligible & ~limits.forced).sum(1) <= wanted).all()):
        warnings.warn(f"no row has more than k = {k} items, so that all are chosen: lower k", stacklevel=4)


def warn_of_new_classes(classes: Tensor, seen: Iterable[int]) -> None:
    """Warn of classes (n,) whose selectors have had no row to learn from."""
    new = sorted(set(classes.tolist()) - set(seen))
    if new:
        warnings.warn(
            f"the model predicts class {', '.join(map(str, new))}, which it predicted for no row of fit, so that the "
            "items chosen for it mean nothing: fit with rows of this class",
            stacklevel=4,
        )


def check_unused(folder: Path, resume: bool, about: Mapping[str, Any]) -> None:
    """Refuse a folder with other content, or with a run that is not to be resumed, before the model is queried."""
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(f"{folder} is a file: pass a new or empty folder")
    inside = list(folder.glob("*"))
    if any(not path.name.startswith(("answers-", "search-", "training")) for path in inside):
        raise RunFolderError(f"{folder} holds other things than a run: pass a new or empty folder")
    if inside and not resume:
        raise in_use(folder)
    for run in inside:
        check_about(run, about)


def row_names(value: Any, rows: int) -> list[int | str] | None:
    """Names of the rows as ints if all are, else as texts."""
    if value is None:
        return None
    names = list(value) if is_listing(value) else []
    if len(names) != rows:
        raise InvalidValueError(f"row_names must name the {rows} rows of X, but got {value!r}: pass a list of as many")
    numbers = [name.item() if isinstance(name, Tensor | np.number) and name.ndim == 0 else name for name in names]
    if all(_checks.is_integer(number) and abs(number) < 2**63 for number in numbers):
        return [int(number) for number in numbers]
    return [str(name) for name in numbers]


def class_names(value: Any) -> list[str] | None:
    """Names of the classes as texts."""
    if value is not None and not is_listing(value):
        raise InvalidTypeError(f"class_names must be a sequence of names, but got {value!r}: pass a list")
    return None if value is None else [str(name) for name in value]
