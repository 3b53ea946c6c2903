"""Masker of sequences of token numbers, whose items are positions, or sentences of tokens."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.maskers.forms import array, replaced, same_shape
from khot.explain.maskers.items import Items
from khot.explain.networks import SentencePredictor, SentenceSelector, TokenPredictor, TokenSelector

_MOST = 1_000_000  # larger numbers would need embeddings that fill the memory


@dataclass
class Tokens:
    """Positions of integer sequences (n, length), the input of a network with an embedding, as items.

    For texts (n, sentences, length) that are split into sentences, the sentences are the items.

    Parameters
    ----------
    padding : int
        Number that stands for no token. Such positions are absent, and positions that are not chosen are set to it.

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
    shape_: list[int] = field(init=False, repr=False, default_factory=list)

    def fit(self, X: Any) -> "Tokens":  # noqa: N803
        """Learn the largest token number and the shape of a row."""
        tokens = _whole_numbers(X)
        self.padding = _checks.whole_number(
            "padding", self.padding, least=0, most=_MOST, hint="renumber the tokens from 0"
        )
        self.vocabulary_, self.shape_ = max(int(tokens.max()), self.padding) + 1, list(tokens.shape[1:])
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """The token numbers, with unseen larger ones replaced by the largest in `fit`.

        The networks take 0 for padding. If padding has another number, that becomes the code of token 0.
        """
        tokens = self._checked(X)
        swapped = np.where(tokens == self.padding, 0, np.where(tokens == 0, self.padding, tokens))
        codes, present = torch.from_numpy(np.minimum(swapped, self.vocabulary_ - 1)), torch.from_numpy(swapped != 0)
        return Items(codes, present if present.ndim == 2 else present.any(-1))

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The sequences with padding at the positions that are not chosen."""
        tokens = self._checked(X)
        if self.padding > np.iinfo(array("tokens", X).dtype).max:
            raise InvalidValueError(
                f"tokens must be numbers that can hold padding, {self.padding}, but are {array('tokens', X).dtype}: "
                "convert them to int64"
            )
        kept = chosen.reshape(*chosen.shape, *[1] * (tokens.ndim - 2))
        return replaced(X, kept, self.padding)

    def pieces(self, row: Any) -> list[tuple[str, int | None]]:
        """Token numbers of each item, separated by spaces."""
        items = [np.atleast_1d(item) for item in array("a row", row).reshape(self.shape_)]
        texts = [" ".join(str(token) for token in item[item != self.padding]) for item in items]
        return [(text, i) for i, text in enumerate(texts) if text]

    def selector(self) -> nn.Module:
        """The convolutional network of L2X."""
        return (TokenSelector if len(self.shape_) == 1 else SentenceSelector)(self.vocabulary_)

    def predictor(self, classes: int) -> nn.Module:
        """The network of L2X: the sum of the features of the chosen items, and two dense layers."""
        return (TokenPredictor if len(self.shape_) == 1 else SentencePredictor)(self.vocabulary_, classes)

    def _checked(self, X: Any) -> np.ndarray:  # noqa: N803
        return same_shape("sequences", _whole_numbers(X), self.shape_, "pad or cut them")


def _whole_numbers(X: Any) -> np.ndarray:  # noqa: N803
    tokens = array("tokens", X)
    if tokens.dtype.kind not in "iu" or tokens.ndim not in (2, 3) or tokens.size == 0:
        raise InvalidTypeError(
            "tokens must be whole numbers of shape (rows, length) or (rows, sentences, length), "
            f"but got {tokens.dtype} of shape {tokens.shape}: "
            "pad the sequences to one length, or pass masker='words' for texts"
        )
    if tokens.min() < 0:
        raise InvalidValueError(f"tokens must not be negative, but got {tokens.min()}: number them from 0")
    if tokens.max() > _MOST:
        raise InvalidValueError(f"tokens must be at most {_MOST}, but got {tokens.max()}: renumber them from 0")
    return tokens.astype(np.int64)
