"""Film reviews as numbers of words, in one sequence or by sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

PADDING, START, UNKNOWN, FIRST = 0, 1, 2, 3  # of no word, the start, rare words and the most frequent word
CLASSES = "negative", "positive"

_NOT_WORD = re.compile(r"[^a-z0-9']+")
_END = re.compile(r"(?<=[.!?])\s+|\n+")


def words(text: str) -> list[str]:
    """Words in lower case, separated by anything but ASCII letters, digits and apostrophes.

    >>> words("It's <br />fine, isn't it?")
    ["it's", 'fine', "isn't", 'it']
    """
    return _NOT_WORD.sub(" ", _plain(text).lower()).split()


def sentences(text: str) -> list[list[str]]:
    """Words of each sentence. Sentences end at . ! ? and line breaks.

    >>> sentences("Fine... really! <br />Or not?")
    [['fine'], ['really'], ['or', 'not']]
    """
    found = (words(sentence) for sentence in _END.split(_plain(text, "\n")))
    return [sentence for sentence in found if sentence]


def numbers_of(texts: Iterable[str], size: int) -> dict[str, int]:
    """Numbers of the most frequent words, all of them below `size`."""
    frequencies = Counter(word for text in texts for word in words(text))
    order = sorted(frequencies, key=lambda word: (-frequencies[word], word))
    return {word: number for number, word in enumerate(order[: size - FIRST], FIRST)}


def as_words(texts: Sequence[str], known: dict[str, int], length: int) -> NDArray[np.int64]:
    """Numbers (n, length): padding, a start token and the words, cut at the front if there are too many."""
    rows = np.full((len(texts), length), PADDING)
    for row, text in zip(rows, texts, strict=True):
        found = [START, *(known.get(word, UNKNOWN) for word in words(text))][-length:]
        row[length - len(found) :] = found
    return rows


def as_sentences(texts: Sequence[str], known: dict[str, int], count: int, length: int) -> NDArray[np.int64]:
    """Numbers (n, count, length): the first words of the first sentences, followed by padding."""
    rows = np.full((len(texts), count, length), PADDING)
    for row, text in zip(rows, texts, strict=True):
        for place, sentence in zip(row, sentences(text), strict=False):
            found = [known.get(word, UNKNOWN) for word in sentence[:length]]
            place[: len(found)] = found
    return rows


def _plain(text: str, line_break: str = " ") -> str:
    return re.sub(r"<br\s*/?>", line_break, text)
