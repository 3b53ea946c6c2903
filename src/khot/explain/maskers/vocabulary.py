"""Words of texts and their numbers."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.maskers.forms import data_frame

PADDING, UNKNOWN, FIRST = 0, 1, 2  # numbers for no word, for rare words, and of the most frequent word

_MARKS = "".join(mark for mark in map(chr, range(0x300, 0x10000)) if unicodedata.category(mark)[0] == "M")
_LETTERS = rf"\w+(?:[{_MARKS}]\w*)*"  # accents and vowel signs can be separate characters
_WORD = re.compile(rf"{_LETTERS}(?:['’]{_LETTERS})*")


def words_of(text: str) -> list[tuple[int, int]]:
    """Spans [start, end) of the words of a text.

    >>> [("It's 5 o'clock!")[a:b] for a, b in words_of("It's 5 o'clock!")]
    ["It's", '5', "o'clock"]
    """
    return [match.span() for match in _WORD.finditer(text)]


def most_frequent(texts: Iterable[str], count: int) -> list[str]:
    """The most frequent words in lower case; ties are resolved alphabetically."""
    frequencies = Counter(word.lower() for text in texts for word in _WORD.findall(text))
    if not frequencies:
        raise InvalidValueError("texts must have words, but got none: look at the file or column they come from")
    return sorted(frequencies, key=lambda word: (-frequencies[word], word))[:count]


def texts(X: Any) -> list[str]:  # noqa: N803
    """List of texts from any sequence of texts."""
    if isinstance(X, str):
        raise InvalidTypeError("texts must be a sequence of str, but got a single str: put it in a list")
    if data_frame(X) is not None:
        raise InvalidTypeError("texts must be a sequence of str, but got a data frame: pass one column of it")
    try:
        rows = list(X)
    except TypeError as error:
        raise InvalidTypeError(f"texts must be a sequence of str, but {error}: pass a list of texts") from error
    for row, text in enumerate(rows):
        if not isinstance(text, str):
            raise InvalidTypeError(
                f"texts must be str, but got {text!r} of type {type(text).__name__} in row {row}: convert or drop it"
            )
    return rows
