"""Sequences of token numbers: the items are positions."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.maskers.items import Items
from khot.explain.networks import TokenPredictor, TokenSelector


@dataclass
class Tokens:
    """Positions of integer sequences (n, length), as a network with an embedding takes them.

    Parameters
    ----------
    padding : int
        The number of no token. Such positions are absent; those that are not chosen are filled with it.

    Examples
    --------
    >>> masker = Tokens().fit(np.array([[0, 5, 7, 2]]))
    >>> masker.encode(np.array([[0, 5, 7, 2]])).present
    tensor([[False,  True,  True,  True]])
    >>> masker.mask(np.array([[0, 5, 7, 2]]), np.array([[False, False, True, False]]))
    array([[0, 0, 7, 0]])
    """

    padding: int = 0
    vocabulary_: int = field(init=False, repr=False, default=0)
    length_: int = field(init=False, repr=False, default=0)

    def fit(self, X: Any) -> "Tokens":  # noqa: N803
        """Learn the largest number and the length."""
        tokens = _whole_numbers(X)
        self.vocabulary_, self.length_ = max(int(tokens.max()), self.padding) + 1, tokens.shape[1]
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """The numbers themselves; one that was not seen in `fit` counts as the largest that was."""
        tokens = self._checked(X)
        codes = torch.from_numpy(np.minimum(tokens, self.vocabulary_ - 1))
        return Items(codes, torch.from_numpy(tokens != self.padding))

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """Padding at all positions that are not chosen."""
        return np.where(chosen, self._checked(X), self.padding).astype(np.asarray(X).dtype)

    def pieces(self, row: Any) -> list[tuple[str, int | None]]:
        """The numbers, with spaces between them."""
        return [(f"{token} ", i) for i, token in enumerate(np.asarray(row).tolist()) if token != self.padding]

    def selector(self) -> nn.Module:
        """The convolutional network of L2X."""
        return TokenSelector(self.vocabulary_)

    def predictor(self, classes: int) -> nn.Module:
        """That of L2X: the mean of the embeddings of the chosen tokens, and two dense layers."""
        return TokenPredictor(self.vocabulary_, classes)

    def _checked(self, X: Any) -> np.ndarray:  # noqa: N803
        tokens = _whole_numbers(X)
        if tokens.shape[1] != self.length_:
            raise InvalidValueError(
                f"sequences must have {self.length_} positions as in fit, but got {tokens.shape[1]}: pad or cut them"
            )
        return tokens


def _whole_numbers(X: Any) -> np.ndarray:  # noqa: N803
    tokens = np.asarray(X)
    if tokens.dtype.kind not in "iu" or tokens.ndim != 2 or tokens.size == 0:
        raise InvalidTypeError(
            f"tokens must be whole numbers of shape (rows, length), but got {tokens.dtype} of shape {tokens.shape}: "
            "pad the sequences to one length, or pass masker='words' for texts"
        )
    if tokens.min() < 0:
        raise InvalidValueError(f"tokens must not be negative, but got {tokens.min()}: number them from 0")
    return tokens.astype(np.int64)
