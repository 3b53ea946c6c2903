"""Masker of texts, whose items are words."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from khot import _checks
from khot.errors import InvalidTypeError
from khot.explain.maskers import vocabulary
from khot.explain.maskers.items import Items
from khot.explain.maskers.texts import MOST, Texts
from khot.explain.networks import TokenPredictor, TokenSelector


@dataclass
class Words(Texts):
    """Words of texts as items.

    Parameters
    ----------
    vocabulary : int
        Number of the most frequent words that the networks distinguish; they treat all others as one unknown word.
        Words outside of the vocabulary can be chosen, too.
    length : int
        Maximum number of items. Only the last words of a longer text are items; the others are never chosen.
    filler : str
        Replacement for words that are not chosen. By default they are removed, with the text around them.

    Examples
    --------
    >>> import numpy as np
    >>> masker = Words(length=4).fit(["A fine film.", "A dull film!"])
    >>> masker.mask(["A fine film."], np.array([[False, True, True, False]]))
    ['fine film']
    >>> masker.pieces("A fine film.")
    [('A', 0), (' ', None), ('fine', 1), (' ', None), ('film', 2), ('.', None)]
    """

    vocabulary: int = 5000
    length: int = 400
    filler: str = ""

    def fit(self, X: Any) -> "Words":  # noqa: N803
        """Learn the most frequent words."""
        self.length = _checks.whole_number(
            "length", self.length, least=1, most=MOST, hint="pass the length of the texts"
        )
        if not isinstance(self.filler, str):
            raise InvalidTypeError(f"filler must be a str, but got {self.filler!r}: pass a word, or '' for none")
        super().fit(X)
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """Word numbers (n, length)."""
        rows = vocabulary.texts(X)
        codes = torch.full((len(rows), self.length), vocabulary.PADDING)
        for row, text in enumerate(rows):
            found = self.numbers(text, self.spans(text))
            codes[row, : len(found)] = found
        return Items(codes, codes != vocabulary.PADDING)

    def selector(self) -> nn.Module:
        """The convolutional network of L2X."""
        return TokenSelector(self.size)

    def predictor(self, classes: int) -> nn.Module:
        """The network of L2X: the sum of the embeddings of the chosen words, and two dense layers."""
        return TokenPredictor(self.size, classes)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Spans of the words that are items."""
        return vocabulary.words_of(text)[-self.length :]
