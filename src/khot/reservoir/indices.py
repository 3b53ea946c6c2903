"""Indices of a weighted sample without replacement."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from khot.errors import InvalidValueError
from khot.reservoir.reservoir import Reservoir


def sample_indices(
    weights: ArrayLike | None, k: int, seed: int | None = None, *, log_weights: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Draw k indices without replacement, one after the other, in proportion to the weights of those that are left.

    It is what ``torch.multinomial(weights, k)`` and ``numpy.random.Generator.choice(n, k, replace=False, p=...)`` draw,
    for any number of weights.

    Parameters
    ----------
    weights : array, shape (n,)
        Weights, at least 0; they need not sum to 1. An array that is mapped into memory is read some rows at a time.
    k : int
        Number of indices, at most the number of positive weights.
    seed : int, optional
        The same seed gives the same indices, on every machine. By default the system draws one.
    log_weights : array, shape (n,), optional
        Logarithms of the weights, instead of `weights`; -inf stands for a weight of 0.

    Returns
    -------
    ndarray, shape (k,)
        Indices in the order of the draws; the first m of them are a sample of m.

    Raises
    ------
    InvalidValueError
        For a weight that is negative or not finite, and if too few are positive.

    Examples
    --------
    >>> from khot.reservoir import sample_indices
    >>> drawn = sample_indices([0.5, 0.0, 2.0, 1.0], k=3, seed=0)
    >>> sorted(drawn.tolist())
    [0, 2, 3]

    Notes
    -----
    O(n) time, with a logarithm only for indices that may be chosen, and O(k) memory.
    """
    reservoir = Reservoir(k, seed)
    reservoir.extend(None, weights, log_weights=log_weights)
    chosen: Any = reservoir.ids
    if len(chosen) < k:
        raise InvalidValueError(
            f"k must be at most the number of positive weights, {len(chosen)}, but got {k}: draw fewer"
        )
    return chosen
