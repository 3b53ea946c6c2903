"""Base of the maskers of texts: a vocabulary, and items that are spans of the text."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot import _checks
from khot.explain.maskers import vocabulary
from khot.explain.maskers.forms import texts_like

MOST = 100_000  # more words or sentences of a text would fill the memory


@dataclass
class Texts:
    """Masker of texts whose items are consecutive spans [start, end), which a subclass defines."""

    vocabulary: int
    filler = ""  # for the items that are not chosen, unless a subclass has a field of this name
    words_: list[str] = field(init=False, repr=False, default_factory=list)

    def fit(self, X: Any) -> "Texts":  # noqa: N803
        """Learn the most frequent words."""
        self.vocabulary = _checks.whole_number("vocabulary", self.vocabulary, least=1)
        self.words_ = vocabulary.most_frequent(vocabulary.texts(X), self.vocabulary)
        vars(self).pop("_known", None)
        return self

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The chosen items in their order and the filler for the others, separated by spaces."""
        texts = []
        for text, row in zip(vocabulary.texts(X), chosen, strict=True):
            items = [text[a:b] if row[i] else self.filler for i, (a, b) in enumerate(self.spans(text))]
            texts.append(" ".join(filter(None, items)))
        return texts_like(X, texts)

    def pieces(self, row: str) -> list[tuple[str, int | None]]:
        """The items, and the text between them."""
        pieces, end = [], 0
        for item, (start, stop) in enumerate(self.spans(row)):
            pieces += [(row[end:start], None), (row[start:stop], item)]
            end = stop
        return [piece for piece in [*pieces, (row[end:], None)] if piece[0]]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Spans of the items of a text."""
        raise NotImplementedError

    def numbers(self, text: str, spans: list[tuple[int, int]]) -> Tensor:
        """Numbers of the words with these spans, between 1 and `size` - 1."""
        numbers = [self._known.get(text[a:b].lower(), vocabulary.UNKNOWN) for a, b in spans]
        return torch.tensor(numbers, dtype=torch.long)

    @property
    def size(self) -> int:
        """Number of codes, including padding."""
        return vocabulary.FIRST + len(self.words_)

    @cached_property
    def _known(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words_, vocabulary.FIRST)}
