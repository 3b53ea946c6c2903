"""Base of the maskers of texts: a vocabulary, and items that are spans of the text."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from khot import _checks
from khot.errors import InvalidValueError
from khot.explain.maskers import vocabulary
from khot.explain.maskers.forms import texts_like

_MOST = 100_000  # more words or sentences of a text would fill the memory


def most(name: str, value: Any) -> int:
    """Check the maximum number of words or sentences of a text."""
    if _checks.whole_number(name, value, least=1) > _MOST:
        raise InvalidValueError(f"{name} must be at most {_MOST}, but got {value}: pass the length of the texts")
    return int(value)


@dataclass
class Texts:
    """Masker of texts whose items are consecutive spans [start, end), which a subclass defines."""

    vocabulary: int
    words_: list[str] = field(init=False, repr=False, default_factory=list)

    def fit(self, X: Any) -> "Texts":  # noqa: N803
        """Learn the most frequent words."""
        self.vocabulary = _checks.whole_number("vocabulary", self.vocabulary, least=1)
        self.words_ = vocabulary.most_frequent(vocabulary.texts(X), self.vocabulary)
        vars(self).pop("_known", None)
        return self

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The chosen items in their order, separated by spaces."""
        texts = [
            " ".join(text[a:b] for i, (a, b) in enumerate(self.spans(text)) if row[i])
            for text, row in zip(vocabulary.texts(X), chosen, strict=True)
        ]
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

    def numbers(self, words: list[str]) -> list[int]:
        """Numbers of words, between 1 and `size` - 1."""
        return [self._known.get(word.lower(), vocabulary.UNKNOWN) for word in words]

    @property
    def size(self) -> int:
        """Number of codes, including padding."""
        return vocabulary.FIRST + len(self.words_)

    @cached_property
    def _known(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words_, vocabulary.FIRST)}
