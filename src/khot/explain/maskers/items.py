"""What all maskers have in common: their interface, and their methods called with checks of what they return."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from khot.errors import InvalidTypeError, InvalidValueError


@dataclass(frozen=True)
class Items:
    """Rows as the networks read them.

    Attributes
    ----------
    codes : Tensor, shape (n, ...)
        Numbers that represent the rows.
    present : bool Tensor, shape (n, items)
        Which items a row has; padding is absent, and never chosen.
    """

    codes: Tensor
    present: Tensor


class Masker(Protocol):
    """Interface of a masker: from rows to items and back.

    A masker of images can also have a method ``picture(row, chosen)`` that returns an array (height, width, 3) of bytes
    for the pages.
    """

    def fit(self, X: Any) -> Any:  # noqa: N803
        """Learn from rows what the other methods need, and return the masker."""
        ...

    def encode(self, X: Any) -> Items:  # noqa: N803
        """Items of rows."""
        ...

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """Rows without the items that are not chosen (n, items), in the form that the model takes.

        X must not be changed.
        """
        ...

    def pieces(self, row: Any) -> Sequence[tuple[str, int | None]]:
        """The row as text in pieces, each with the number of its item, or None for text between items."""
        ...

    def selector(self) -> nn.Module:
        """A new network from codes (b, ...) to logits (b, items)."""
        ...

    def predictor(self, classes: int) -> nn.Module:
        """A new network from codes (b, ...) and a mask (b, items) to class logits (b, classes)."""
        ...


def take(X: Any, rows: slice) -> Any:  # noqa: N803
    """A slice of the rows of an array, a tensor, a data frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return list(X[rows]) if isinstance(X, list | tuple) else X[rows]


def in_order(masker: Masker, X: Any) -> Any:  # noqa: N803
    """Rows with their columns in the order of `fit`, for maskers that know columns."""
    arrange = getattr(masker, "in_order", None)
    return X if arrange is None else arrange(X)


def encoded(masker: Masker, X: Any) -> Items:  # noqa: N803
    """Items of rows, checked: tensors with one entry for each row."""
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
            f"got {len(codes)} rows and {present.dtype} of shape {tuple(present.shape)}: return one entry for each row"
        )
    return Items(codes.detach(), present)


def masked(masker: Masker, X: Any, chosen: NDArray[np.bool_]) -> Any:  # noqa: N803
    """Rows with the chosen items (n, items) alone, checked; arrays are passed to the masker read-only."""
    found = masker.mask(*(_read_only(part) if isinstance(part, np.ndarray) else part for part in (X, chosen)))
    if not hasattr(found, "__len__"):
        raise InvalidTypeError(f"mask must return rows, but returned {found!r}: fix the masker")
    if len(found) != len(X):
        raise InvalidValueError(f"mask must keep the rows, {len(X)}, but returned {len(found)}: fix the masker")
    return found


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
