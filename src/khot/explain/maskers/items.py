"""What all maskers have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn


@dataclass(frozen=True)
class Items:
    """Rows as the networks read them.

    Attributes
    ----------
    codes : Tensor, shape (n, ...)
        Numbers that stand for the rows.
    present : bool Tensor, shape (n, items)
        Which items a row has; padding is absent, and never chosen.
    """

    codes: Tensor
    present: Tensor


class Masker(Protocol):
    """From rows to items and back.

    One for images can also have ``picture(row, chosen)``, an array (height, width, 3) of bytes that pages show.
    """

    def fit(self, X: Any) -> Any:  # noqa: N803
        """Learn from rows what the other methods need, and return itself."""
        ...

    def encode(self, X: Any) -> Items:  # noqa: N803
        """The items of rows."""
        ...

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The rows with all items but the chosen (n, items) removed, in the form that the black box takes.

        X stays as it is.
        """
        ...

    def pieces(self, row: Any) -> Sequence[tuple[str, int | None]]:
        """The row as text, cut in pieces: each with the number of its item, or None for what lies between items."""
        ...

    def selector(self) -> nn.Module:
        """A new network from codes (b, ...) to logits (b, items)."""
        ...

    def predictor(self, classes: int) -> nn.Module:
        """A new network from codes (b, ...) and a mask (b, items) to the logits (b, classes) of the classes."""
        ...


def take(X: Any, rows: Any) -> Any:  # noqa: N803
    """Some rows, by a slice or numbers, of an array, a tensor, a data frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, list | tuple):
        return list(X[rows]) if isinstance(rows, slice) else [X[i] for i in rows]
    return X[rows]
