"""Maskers of texts: words and sentences."""

import time
import unicodedata

import numpy as np
import pandas
import polars
import pytest

from khot.explain import Sentences, Words
from tests.explain.chosen import TEXTS, flags


def test_words_keep_their_order_and_spelling():
    masker = Words(length=6).fit(TEXTS)
    assert masker.mask(TEXTS[:1], flags(6, 4, 0)) == ["The good"]
    assert Words(length=6, filler="-").fit(TEXTS).mask(TEXTS[:1], flags(6, 4)) == ["- - - - good"]
    assert masker.mask([TEXTS[2]], flags(6, 0)) == [""]


def test_absent_words_are_padding_and_rare_ones_are_one():
    items = Words(vocabulary=1, length=6).fit(TEXTS).encode(TEXTS)
    assert items.present.sum(1).tolist() == [5, 1, 0, 6]
    assert items.codes[0].tolist() == [1, 1, 1, 1, 2, 0]  # good is the most frequent word
    assert items.codes[1].tolist() == [2, 0, 0, 0, 0, 0]


def test_of_long_texts_the_last_words_are_items():
    masker = Words(length=2).fit(TEXTS)
    assert masker.mask(TEXTS[:1], flags(2, 0)) == ["wasn't"]
    assert masker.pieces(TEXTS[0])[0] == ("The film, frankly, ", None)


@pytest.mark.parametrize("masker", [Words(length=9), Sentences(sentences=3)])
def test_pieces_are_the_text(masker):
    masker.fit(TEXTS)
    present = masker.encode(TEXTS).present
    for text, there in zip(TEXTS, present, strict=True):
        pieces = masker.pieces(text)
        assert "".join(piece for piece, _ in pieces) == text
        assert [item for _, item in pieces if item is not None] == list(range(int(there.sum())))


def test_sentences_end_at_marks_and_line_breaks():
    masker = Sentences(sentences=4).fit(TEXTS)
    assert [piece for piece, item in masker.pieces(TEXTS[3]) if item is not None] == [
        "A good   film?",
        "Yes.",
        "Really (truly).",
    ]
    assert masker.mask([TEXTS[3]], flags(4, 2, 0)) == ["A good   film? Really (truly)."]
    codes = masker.encode(TEXTS).codes
    assert codes.shape == (4, 4, 100)
    assert (codes[3] != 0).sum(-1).tolist() == [3, 1, 2, 0]


@pytest.mark.parametrize("masker", [Words(length=3), Sentences(sentences=2, length=3)])
def test_a_second_fit_forgets_the_words_of_the_first(masker):
    masker.fit(["old words"]).encode(["old words"])
    codes = masker.fit(["new texts and words"]).encode(["old new"]).codes
    assert codes.flatten()[:2].tolist() == [1, 3]  # and, new, texts, words


def test_words_with_marks_are_one_word_and_known():
    for word in ("İstanbul", unicodedata.normalize("NFD", "résumé"), "हिन्दी"):
        masker = Words(length=3).fit([word])
        assert masker.encode([word]).codes.tolist() == [[2, 0, 0]]
        assert masker.pieces(word) == [(word, 0)]


def test_long_runs_without_words_take_no_time():
    masker = Sentences().fit(TEXTS)
    start = time.perf_counter()
    assert masker.pieces("—" * 20_000) == [("—" * 20_000, None)]
    assert time.perf_counter() - start < 1


def test_sentences_begin_after_marks_and_keep_what_closes_them():
    masker = Sentences().fit(TEXTS)
    text = '... "Stop." -- !) he said?! (Twice.)\n***\n- so'
    items = [piece for piece, item in masker.pieces(text) if item is not None]
    assert items == ['"Stop."', "he said?!", "(Twice.)", "- so"]


def test_dots_inside_words_end_no_sentence():
    masker = Sentences().fit(TEXTS)
    text = "It has 3.5 stars at www.foo.com/a?b=1. 好。Yes!"
    assert [piece for piece, item in masker.pieces(text) if item is not None] == [
        "It has 3.5 stars at www.foo.com/a?b=1.",
        "好。",
        "Yes!",
    ]
    for hostile in ("." * 10**6 + "a", ".'" * 10**6, "a" + "'" * 10**6):
        start = time.perf_counter()
        masker.pieces(hostile)
        assert time.perf_counter() - start < 5


def test_texts_stay_in_their_form():
    chosen = np.array([[True, False]] * 2)
    for masker, masked in ((Words(length=2), ["fine", "dull"]), (Words(length=2, filler="-"), ["fine -", "dull -"])):
        masker.fit(["fine film", "dull film"])
        assert masker.mask(["fine film", "dull film"], chosen) == masked
        for dtype in (np.str_, object):
            given = np.array(["fine film", "dull film"], dtype=dtype)
            assert masker.mask(given, chosen).tolist() == masked
            assert masker.mask(given, chosen).dtype.kind == given.dtype.kind


def test_series_of_texts_stay_series():
    series = pandas.Series(["fine film", "dull film"], index=[5, 7], name="review")
    masked = Words(length=2).fit(series).mask(series, np.array([[True, False]] * 2))
    pandas.testing.assert_series_equal(masked, pandas.Series(["fine", "dull"], index=[5, 7], name="review"))


def test_series_of_polars_stay_series():
    series = polars.Series("review", ["fine film", "dull film"])
    masked = Words(length=2).fit(series).mask(series, np.array([[True, False]] * 2))
    assert masked.equals(polars.Series("review", ["fine", "dull"]), check_names=True)
