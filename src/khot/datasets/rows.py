"""The containers of a dataset: training rows, test rows, and a description of both."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Inputs with labels and ids; the first axis of all three arrays counts the rows.

    Attributes
    ----------
    inputs : ndarray, shape (n, ...)
        uint8 images (n, h, w) or (n, h, w, 3), uint8 word indicators (n, words), or texts (n,) of dtype object.
    labels : ndarray of int64, shape (n,)
        Classes, from 0.
    ids : ndarray, shape (n,)
        The name of each row in the published files if it has one (str), otherwise its number, from 0.
    """

    inputs: np.ndarray
    labels: NDArray[np.int64]
    ids: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Rows(inputs={self.inputs.dtype}{list(self.inputs.shape)}, labels=int64[{len(self)}])"

    def take(self, index: np.ndarray) -> "Rows":
        """Copy some of the rows.

        Parameters
        ----------
        index : ndarray of int or bool
            Numbers of the rows in the wanted order, or a mask (n,).

        Returns
        -------
        Rows

        Examples
        --------
        >>> import khot, numpy as np
        >>> khot.datasets.load("digits").test.take(np.arange(5))
        Rows(inputs=uint8[5, 8, 8], labels=int64[5])
        """
        return Rows(self.inputs[index], self.labels[index], self.ids[index])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset with the split under which it is published.

    Attributes
    ----------
    name : str
        Its name in `NAMES`.
    train, test : Rows
        A dataset that is published as one set has all rows in `train` and none in `test`; divide it with `split`.
    classes : tuple of str
        Names of the classes, in the order of the labels.
    origin : str
        The page of its publisher, with terms of use and the paper to cite.
    files : tuple of Path
        The local files that were read; none for a dataset that comes with an installed package.
    """

    name: str
    train: Rows
    test: Rows
    classes: tuple[str, ...]
    origin: str
    files: tuple[Path, ...] = ()


def numbered(inputs: np.ndarray, labels: np.ndarray) -> Rows:
    """Make rows that have no published names; their ids are their numbers."""
    return Rows(inputs, labels.astype(np.int64), np.arange(len(labels)))
