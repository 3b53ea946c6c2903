"""Tables: the items are columns, or groups of columns such as the indicators of one category."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.maskers.items import Items
from khot.explain.networks import ColumnPredictor, ColumnSelector


@dataclass
class Columns:
    """Columns of a numeric table as items.

    Parameters
    ----------
    groups : sequence of sequences of int or str, optional
        Columns, by number or name, that are chosen together; every column belongs to one group. By default each is a
        group of its own.
    baseline : sequence of float, optional
        What a column that is not chosen is replaced with, by default its mean.
    names : sequence of str, optional
        Names of the columns, by default those of a data frame, or their numbers.

    Examples
    --------
    >>> masker = Columns(groups=[[0], [1, 2]]).fit(np.array([[1.0, 0, 1], [3.0, 1, 0]]))
    >>> masker.mask(np.array([[7.0, 1, 0]]), np.array([[True, False]]))
    array([[7. , 0.5, 0.5]])
    >>> masker.pieces(np.array([7.0, 1, 0]))
    [('0 = 7', 0), ('1 = 1, 2 = 0', 1)]
    """

    groups: Sequence[Sequence[int | str]] | None = None
    baseline: Sequence[float] | None = None
    names: Sequence[str] | None = None
    names_: list[str] = field(init=False, repr=False, default_factory=list)
    group_of_: list[int] = field(init=False, repr=False, default_factory=list)
    mean_: list[float] = field(init=False, repr=False, default_factory=list)
    scale_: list[float] = field(init=False, repr=False, default_factory=list)

    def fit(self, X: Any) -> "Columns":  # noqa: N803
        """Learn the names, means and scales of the columns."""
        values = _numbers(X)
        self.names_ = self._find_names(X, values.shape[1])
        self.group_of_ = self._find_groups()
        scale = values.std(0)
        self.mean_, self.scale_ = values.mean(0).tolist(), np.where(scale > 0, scale, 1.0).tolist()
        if self.baseline is not None and len(self.baseline) != len(self.names_):
            raise InvalidValueError(
                f"baseline must have a number for each of the {len(self.names_)} columns, but got {len(self.baseline)}"
                ": pass one for each"
            )
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """Columns of mean 0 and variance 1; all items are present."""
        values = (self._checked(X) - self.mean_) / self.scale_
        codes = torch.from_numpy(values.astype(np.float32))
        return Items(codes, torch.ones(len(codes), self._items, dtype=torch.bool))

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The table with the baseline in all columns that are not chosen."""
        baseline = self.mean_ if self.baseline is None else self.baseline
        values = np.where(chosen[:, self.group_of_], self._checked(X), baseline)
        return type(X)(values, columns=X.columns, index=X.index) if hasattr(X, "columns") else values

    def pieces(self, row: Any) -> list[tuple[str, int | None]]:
        """`name = value` of the columns of each group."""
        values = [f"{name} = {value:g}" for name, value in zip(self.names_, np.asarray(row, float), strict=True)]
        groups = np.asarray(self.group_of_)
        return [(", ".join(values[i] for i in np.flatnonzero(groups == g)), g) for g in range(self._items)]

    def selector(self) -> nn.Module:
        """Two dense layers."""
        return ColumnSelector(len(self.names_), self._items)

    def predictor(self, classes: int) -> nn.Module:
        """Two dense layers on the columns of the chosen items."""
        return ColumnPredictor(self.group_of_, classes)

    @property
    def _items(self) -> int:
        return max(self.group_of_) + 1

    def _find_names(self, X: Any, count: int) -> list[str]:  # noqa: N803
        names = getattr(X, "columns", range(count)) if self.names is None else self.names
        if len(names) != count:
            raise InvalidValueError(f"names must be {count}, one for each column, but got {len(names)}: pass as many")
        return [str(name) for name in names]

    def _find_groups(self) -> list[int]:
        if self.groups is None:
            return list(range(len(self.names_)))
        group_of = [-1] * len(self.names_)
        for number, group in enumerate(self.groups):
            for column in group:
                place = self.names_.index(column) if column in self.names_ else column
                if not isinstance(place, int) or not 0 <= place < len(group_of) or group_of[place] != -1:
                    raise InvalidValueError(
                        f"groups must name each of the {len(group_of)} columns once, but got {column!r} "
                        f"in group {number}, which is unknown or there twice: list every column once"
                    )
                group_of[place] = number
        if -1 in group_of:
            raise InvalidValueError(
                f"groups must name each column once, but column {self.names_[group_of.index(-1)]!r} is in none: "
                "give it a group of its own"
            )
        return group_of

    def _checked(self, X: Any) -> np.ndarray:  # noqa: N803
        values = _numbers(X)
        if values.shape[1] != len(self.names_):
            raise InvalidValueError(
                f"rows must have {len(self.names_)} columns as in fit, but got {values.shape[1]}: pass the same columns"
            )
        return values


def _numbers(X: Any) -> np.ndarray:  # noqa: N803
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"a table must consist of numbers, but {error}: "
            "encode categories as numbers, or pass masker='words' for text"
        ) from error
    if values.ndim != 2 or values.size == 0:
        raise InvalidValueError(f"a table must have shape (rows, columns), but got {values.shape}: add an axis")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InvalidValueError(
            f"a table must be finite, but got {values[row, column]} in row {row}, column {column}: fill or drop it"
        )
    return values
