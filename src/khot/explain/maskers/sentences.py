"""Masker of texts, whose items are sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn

from khot import _checks
from khot.explain.maskers import vocabulary
from khot.explain.maskers.items import Items
from khot.explain.maskers.texts import MOST, Texts
from khot.explain.networks import SentencePredictor, SentenceSelector

_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+(?=\s|$)|\n|[。！？]+")  # but not the dots of 3.5 or a.com
_LETTER = re.compile(r"\w")


@dataclass
class Sentences(Texts):
    """Sentences of texts as items. They end at line breaks, and at . ! ? before a space.

    Parameters
    ----------
    vocabulary : int
        Number of the most frequent words that the networks distinguish.
    sentences : int
        Maximum number of items. Only the first sentences of a longer text are items; the others are never chosen.
    length : int
        Maximum number of words of a sentence that the networks read, from its start.

    Examples
    --------
    >>> import numpy as np
    >>> masker = Sentences(sentences=3).fit(["Fine. Or not?", "Dull!"])
    >>> masker.mask(["Fine. Or not?"], np.array([[False, True, False]]))
    ['Or not?']
    """

    vocabulary: int = 20_000
    sentences: int = 15
    length: int = 100

    def fit(self, X: Any) -> "Sentences":  # noqa: N803
        """Learn the most frequent words."""
        self.sentences = _checks.whole_number("sentences", self.sentences, least=1, most=MOST)
        self.length = _checks.whole_number(
            "length", self.length, least=1, most=MOST, hint="pass the length of the texts"
        )
        super().fit(X)
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """Word numbers (n, sentences, length)."""
        rows = vocabulary.texts(X)
        codes = torch.full((len(rows), self.sentences, self.length), vocabulary.PADDING)
        for row, text in enumerate(rows):
            for item, (start, stop) in enumerate(self.spans(text)):
                sentence = text[start:stop]
                found = self.numbers(sentence, vocabulary.words_of(sentence)[: self.length])
                codes[row, item, : len(found)] = found
        return Items(codes, (codes != vocabulary.PADDING).any(-1))

    def selector(self) -> nn.Module:
        """The convolutional network of L2X on sentences."""
        return SentenceSelector(self.size)

    def predictor(self, classes: int) -> nn.Module:
        """The network of L2X: convolutions of the chosen sentences, their sum, and two dense layers."""
        return SentencePredictor(self.size, classes)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Spans of the sentences that are items, without the spaces before them."""
        return [(b - len(text[a:b].lstrip()), b) for a, b in islice(_sentences(text), self.sentences)]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences that have words, including the marks and brackets that end them."""
    place = 0
    for stop in (*(match.end() for match in _END.finditer(text)), len(text)):
        sentence = text[place:stop].rstrip()
        if _LETTER.search(sentence):
            yield place, place + len(sentence)
        place = stop
