"""Seeded random splits of rows into two parts."""

import operator
from typing import Any

import numpy as np

from khot._renamed import renamed
from khot.datasets.rows import Rows
from khot.errors import InvalidTypeError, InvalidValueError


@renamed(seed="random_state")
def split(rows: Rows, test_rows: int, random_state: int, stratified: bool = False) -> tuple[Rows, Rows]:
    """Split rows at random into two parts, the second of a given size.

    Parameters
    ----------
    rows : Rows, of length n
        The rows to split: for example a dataset that is published as one set, or training rows of which some become
        validation rows.
    test_rows : int
        Size of the second part, between 1 and n - 1.
    random_state : int
        Seed that fixes the result, between 0 and 2^32 - 1.
    stratified : bool
        Whether each class has the same share of both parts, up to rounding to whole rows.

    Returns
    -------
    Rows, Rows
        n - test_rows rows and test_rows rows, as copies, each part in the original order.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For a size or seed that is out of range or not an int, or a stratified split with too few rows for the classes.

    Examples
    --------
    >>> import khot
    >>> digits = khot.datasets.load("digits")
    >>> train, validation = khot.datasets.split(digits.train, test_rows=200, random_state=0)
    >>> len(train), len(validation)
    (1237, 200)
    >>> train.ids[:5], validation.ids[:5]
    (array([0, 3, 6, 7, 8]), array([ 1,  2,  4,  5, 18]))

    Notes
    -----
    The permutation comes from NumPy's legacy generator, which is frozen: a seed gives the same rows in every version.
    """
    from sklearn.model_selection import train_test_split

    test_rows = _whole_number("test_rows", test_rows, 1, len(rows) - 1)
    seed = _whole_number("random_state", random_state, 0, 2**32 - 1)
    classes = rows.labels if stratified else None
    try:
        first, second = train_test_split(np.arange(len(rows)), test_size=test_rows, random_state=seed, stratify=classes)
    except ValueError as error:
        raise InvalidValueError(f"rows cannot be stratified ({error}): use stratified=False") from error
    return rows.take(np.sort(first)), rows.take(np.sort(second))


def _whole_number(name: str, value: Any, least: int, most: int) -> int:
    """Return an int within bounds, as `khot._checks` would, but without loading torch."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise InvalidTypeError(f"{name} must be an int, but got {value!r}: pass a whole number") from error
    if not least <= number <= most:
        raise InvalidValueError(
            f"{name} must lie between {least} and {most}, but got {number}: choose one in that range"
        )
    return number
