"""What an explainer is given, checked."""

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.black_box import PredictProba
from khot.explain.maskers import Columns, Items, Masker, Patches, Sentences, Tokens, Words
from khot.training._folders import in_use

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
    try:
        return len(X)
    except TypeError as error:
        raise InvalidTypeError(
            f"X must be rows that can be counted, but got {type(X).__name__} ({error}): "
            "pass an array, a data frame, a tensor or a list"
        ) from error


def encoded(masker: Masker, X: Any) -> Items:  # noqa: N803
    """The items of rows, as many as there are rows."""
    items = masker.encode(X)
    if len(items.codes) != len(X) or items.present.dtype != torch.bool:
        raise InvalidValueError(
            f"the masker must encode the {len(X)} rows of X with a bool tensor of what is present, but got "
            f"{len(items.codes)} rows and {items.present.dtype}: pass one row for each"
        )
    return items


def check_unused(explainer: Any) -> None:
    """Refuse a used folder before the black box is asked."""
    if explainer.folder is not None and not explainer.resume and any(Path(explainer.folder).glob("*")):
        raise in_use(explainer.folder)


def digest(codes: Tensor, X: Any) -> str:  # noqa: N803
    """Tells rows apart, also texts whose differences the codes do not show."""
    found = hashlib.blake2b(codes.contiguous().numpy().tobytes(), digest_size=8)
    if isinstance(next(iter(X)), str):
        found.update("\0".join(X).encode(errors="surrogatepass"))
    return found.hexdigest()
