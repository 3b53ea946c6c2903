"""Masker of tables, whose items are columns or groups of columns, such as the indicators of one category."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import _checks
from khot._estimators.scaling import Scaling, mean_and_spread, one_for_zero
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.maskers.forms import array, data_frame, is_listing, replaced
from khot.explain.maskers.items import Items
from khot.explain.networks import ColumnPredictor, ColumnSelector

_EXACT = 2.0**53  # whole numbers below it have all their digits


@dataclass
class Columns:
    """Columns of a numeric table as items.

    Columns of data frames are identified by name if `fit` got a data frame, and by position otherwise.

    Parameters
    ----------
    groups : sequence of sequences of int or str, optional
        Columns, by number or name, that are chosen together. Every column belongs to exactly one group. By default each
        column is a group.
    baseline : sequence of float, optional
        Values that replace the columns that are not chosen, by default their means.
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
    columns_: list[str] = field(init=False, repr=False, default_factory=list)
    group_of_: list[int] = field(init=False, repr=False, default_factory=list)
    mean_: list[float] = field(init=False, repr=False, default_factory=list)
    scale_: list[float] = field(init=False, repr=False, default_factory=list)

    def fit(self, X: Any) -> "Columns":  # noqa: N803
        """Learn names, means and scales of the columns."""
        values = _numbers(X)
        self.names = None if self.names is None else _listed("names", self.names)
        self.columns_ = _names(X) or list(self.names or [])
        twice = next((name for name in self.columns_ if self.columns_.count(name) > 1), None)
        if twice is not None:
            raise InvalidValueError(f"columns must have different names, but several are called {twice!r}: rename some")
        unnamed = self.columns_ or [str(number) for number in range(values.shape[1])]
        self.names_ = unnamed if self.names is None else list(self.names)
        if len(self.names_) != values.shape[1]:
            raise InvalidValueError(
                f"names must be {values.shape[1]}, one for each column, but got {len(self.names_)}: pass as many"
            )
        self.group_of_ = self._find_groups()
        mean, spread = mean_and_spread(lambda: [values])
        self.mean_, self.scale_ = mean.tolist(), one_for_zero(spread).tolist()
        self.baseline = None if self.baseline is None else _baseline(self.baseline, len(self.names_))
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """Columns scaled to mean 0 and variance 1; all items are present."""
        codes = Scaling(np.array(self.mean_), np.array(self.scale_))(torch.from_numpy(self._checked(X)))
        if not codes.isfinite().all():
            name = self.names_[(~codes.isfinite()).nonzero()[0, 1]]
            raise InvalidValueError(
                f"columns must be about as large as in fit, and below 1e300, but {name!r} is not: divide it"
            )
        return Items(codes, torch.ones(len(codes), self._items, dtype=torch.bool))

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The table with the baseline in the columns that are not chosen."""
        self._checked(X)
        baseline = np.asarray(self.mean_ if self.baseline is None else self.baseline)
        back = np.argsort(self._order(X))
        return replaced(X, chosen[:, np.asarray(self.group_of_)[back]], baseline[back])

    def in_order(self, X: Any) -> Any:  # noqa: N803
        """The table with its columns in the order of `fit`, as the model expects them."""
        if not self.columns_ or len(_names(X)) != len(self.columns_):  # `encode` raises an error for the latter
            return X
        order = self._order(X)
        return X if order == sorted(order) else data_frame(X)[:, order].to_native()

    def pieces(self, row: Any) -> list[tuple[str, int | None]]:
        """Texts ``name = value`` of the columns of each group."""
        numbers = _shortest(array("a row", row).reshape(-1))[self._order(row)]
        values = [f"{name} = {_text(number)}" for name, number in zip(self.names_, numbers, strict=True)]
        groups = np.asarray(self.group_of_)
        return [(", ".join(values[i] for i in np.flatnonzero(groups == g)), g) for g in range(self._items)]

    def selector(self) -> nn.Module:
        """A network of dense layers."""
        return ColumnSelector(len(self.names_), self._items)

    def predictor(self, classes: int) -> nn.Module:
        """A network of dense layers on the columns of the chosen items."""
        return ColumnPredictor(self.group_of_, classes)

    @property
    def _items(self) -> int:
        return max(self.group_of_) + 1

    def _find_groups(self) -> list[int]:
        if self.groups is None:
            return list(range(len(self.names_)))
        if not is_listing(self.groups):
            raise InvalidTypeError(f"groups must be lists of columns, but got {self.groups!r}: list them")
        self.groups = [_columns_of(group, number) for number, group in enumerate(self.groups)]
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
        order = self._order(X)
        if values.shape[1] != len(self.names_):
            others = [repr(name) for name in _names(X) if name not in self.columns_]
            unknown = f", such as {others[0]}" if others and self.columns_ else ""
            raise InvalidValueError(
                f"rows must have {len(self.names_)} columns as in fit, but got {values.shape[1]}{unknown}: "
                "pass the same columns"
            )
        return values[:, order]

    def _order(self, X: Any) -> list[int]:  # noqa: N803
        """Positions of the columns of `fit` in a table or row."""
        names = _names(X)
        if not (names and self.columns_):
            return list(range(len(self.names_)))
        for name in self.columns_:
            if name not in names:
                raise InvalidValueError(f"rows must have the columns of fit, but {name!r} is not there: add it")
        return [names.index(name) for name in self.columns_]


def _names(X: Any) -> list[str]:  # noqa: N803
    """Names of the columns of a data frame or of a row of one, none for an array."""
    if hasattr(X, "iloc") and X.ndim == 1:
        return [str(name) for name in X.index]
    frame = data_frame(X)
    return [] if frame is None else [str(name) for name in frame.columns]


def _listed(name: str, names: Any) -> list[str]:
    if not is_listing(names):
        raise InvalidTypeError(f"{name} must be a list of names, but got {names!r}: list one for each column")
    return [str(each) for each in names]


def _shortest(numbers: np.ndarray) -> np.ndarray:
    """Numbers with the fewest digits in their precision: in float32, 0.1 instead of 0.10000000149."""
    return (numbers.astype(str) if numbers.dtype.kind == "f" else numbers).astype(float)


def _text(number: float) -> str:
    """A number as text; whole numbers, such as ids, have all their digits."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < _EXACT else f"{number:.10g}"


def _columns_of(group: Any, number: int) -> list[int | str]:
    """A group as a list of numbers and names."""
    columns = list(group) if is_listing(group) else []
    if not columns:
        raise InvalidValueError(
            f"groups must be lists of columns, but group {number} is {group!r}: list a column, or leave it out"
        )
    return [int(column) if _checks.is_integer(column) else column for column in columns]


def _baseline(baseline: Any, count: int) -> list[float]:
    values = array("baseline", baseline)
    if values.dtype.kind not in "biuf":
        raise InvalidTypeError(f"baseline must be numbers, but got {baseline!r}: pass one for each column")
    if values.shape != (count,):
        raise InvalidValueError(
            f"baseline must have a number for each of the {count} columns, but got shape {values.shape}: "
            "pass one for each"
        )
    if not np.isfinite(values).all():
        raise InvalidValueError(f"baseline must be finite, but got {baseline!r}: pass other numbers")
    return values.astype(float).tolist()


def _numbers(X: Any) -> np.ndarray:  # noqa: N803
    """The table in float64. Texts, categories and dates are refused, even if they could be converted."""
    import narwhals

    others = (narwhals.String, narwhals.Categorical, narwhals.Enum, narwhals.Binary)
    frame = data_frame(X)
    for name, dtype in {} if frame is None else frame.schema.items():
        if dtype.is_temporal() or dtype in others:
            raise InvalidTypeError(
                f"a table must consist of numbers, but column {name!r} is {dtype}: encode it as numbers, or drop it; "
                "for texts pass the column alone, and masker='words'"
            )
    values = array("a table", X)
    try:
        if values.dtype.kind not in "biufO":
            raise TypeError(f"got {values.dtype}")
        if values.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in values.flat):
            raise TypeError("got texts")
        values = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(
            f"a table must consist of numbers, but {error}: "
            "encode categories as numbers, or pass masker='words' for text"
        ) from error
    if values.ndim != 2 or values.size == 0:
        raise InvalidValueError(
            f"a table must have shape (rows, columns), at least one of each, but got {values.shape}: reshape or fill it"
        )
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InvalidValueError(
            f"a table must be finite, but got {values[row, column]} in row {row}, column {column}: fill or drop it"
        )
    return values
