import time
import unicodedata

import numpy as np
import pyarrow
import pytest
import torch

from khot.errors import KhotError
from khot.explain import Columns, Explanation, Patches, Sentences, Tokens, Words

TEXTS = ["The film, frankly, wasn't good.", "Good!", "", "A good   film?  Yes.\nReally (truly)."]


def flags(items: int, *chosen: int) -> np.ndarray:
    return np.isin(np.arange(items), chosen)[None]


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
    assert items == ['"Stop."', ") he said?!", "(Twice.)", "- so"]


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
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["fine film", "dull film"], index=[5, 7], name="review")
    masked = Words(length=2).fit(series).mask(series, np.array([[True, False]] * 2))
    pandas.testing.assert_series_equal(masked, pandas.Series(["fine", "dull"], index=[5, 7], name="review"))


def test_series_of_polars_stay_series():
    polars = pytest.importorskip("polars")
    series = polars.Series("review", ["fine film", "dull film"])
    masked = Words(length=2).fit(series).mask(series, np.array([[True, False]] * 2))
    assert masked.equals(polars.Series("review", ["fine", "dull"]), check_names=True)


def test_columns_are_replaced_by_their_means():
    X = np.array([[1.0, 10.0], [3.0, 30.0]])  # noqa: N806
    masker = Columns().fit(X)
    np.testing.assert_array_equal(masker.mask(X, np.array([[True, False], [False, True]])), [[1, 20], [2, 30]])
    np.testing.assert_allclose(masker.encode(X).codes, [[-1, -1], [1, 1]], rtol=1e-6)
    given = Columns(baseline=[0.0, 5.0]).fit(X)
    np.testing.assert_array_equal(given.mask(X, np.zeros((2, 2), bool)), [[0, 5], [0, 5]])


def test_groups_of_columns_are_one_item():
    X = np.array([[1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])  # noqa: N806
    masker = Columns(groups=[[1, 2], [0]]).fit(X)
    assert masker.encode(X).present.shape == (2, 2)
    np.testing.assert_array_equal(masker.mask(X, np.array([[True, False]] * 2)), [[2, 0, 1], [2, 1, 0]])
    assert masker.pieces(X[0]) == [("1 = 0, 2 = 1", 0), ("0 = 1", 1)]


def test_data_frames_stay_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 3], "pay": [10.0, 30.0]}, index=["x", "y"])
    masker = Columns(groups=[["pay"], ["age"]]).fit(frame)
    masked = masker.mask(frame, np.array([[True, False]] * 2))
    assert list(masked.columns) == ["age", "pay"]
    assert list(masked.index) == ["x", "y"]
    assert masked["age"].tolist() == [2, 2]
    assert masker.pieces(frame.iloc[0]) == [("pay = 10", 0), ("age = 1", 1)]


def test_patches_at_the_edge_may_be_smaller():
    images = np.arange(50, dtype=np.uint8).reshape(2, 5, 5)
    masker = Patches(size=2, baseline=0).fit(images)
    assert masker.grid == (3, 3)
    masked = masker.mask(images, np.isin(np.arange(9), [8])[None].repeat(2, 0))
    assert masked.dtype == np.uint8
    assert masked[0, 4, 4] == 24
    assert masked.sum() == 24 + 49
    items = masker.encode(images)
    assert masker.selector()(items.codes).shape == (2, 9)
    assert masker.predictor(3)(items.codes, items.present.float()).shape == (2, 3)


@pytest.mark.parametrize("channels", [(), (3,)])
def test_the_picture_frames_the_chosen_patches_and_fades_the_others(channels: tuple[int, ...]):
    image = np.zeros((4, 4, *channels), np.float32)
    image[:2, :2], image[2:, 2:] = 7, 5
    masker = Patches(size=2).fit(image[None])
    picture = masker.picture(image, np.array([True, False, False, False]))
    assert (picture.shape, picture.dtype) == ((256, 256, 3), np.uint8)
    assert (picture[2:126, 2:126] == 255).all()  # within its frame
    assert (picture[:2, :128, 2] == 0).all()
    assert (picture[:128, 128:] == 255 // 3).all()
    page = Explanation(masker, image[None], np.array([[True, False, False, False]]), np.zeros((1, 4)))._repr_html_()
    assert 'src="data:image/png;base64,' in page
    masker.picture(np.zeros_like(image), np.zeros(4, bool))  # one colour only


def test_tokens_are_padded():
    X = np.array([[0, 3, 5], [2, 2, 0]])  # noqa: N806
    masker = Tokens().fit(X)
    assert masker.encode(X).present.tolist() == [[False, True, True], [True, True, False]]
    assert masker.encode(np.array([[9, 0, 0]])).codes.tolist() == [[5, 0, 0]]
    np.testing.assert_array_equal(masker.mask(X, np.array([[True, False, True]] * 2)), [[0, 0, 5], [2, 0, 0]])


def test_tokens_of_sentences_are_one_item():
    X = np.array([[[1, 2], [3, 0], [0, 0]]])  # noqa: N806
    masker = Tokens().fit(X)
    assert masker.encode(X).present.tolist() == [[True, True, False]]
    np.testing.assert_array_equal(masker.mask(X, flags(3, 1)), [[[0, 0], [3, 0], [0, 0]]])
    assert masker.pieces(X[0]) == [("1 2", 0), ("3", 1)]
    assert masker.selector()(masker.encode(X).codes).shape == (1, 3)


@pytest.mark.parametrize(
    ("masker", "X"),
    [(Words(length=8), TEXTS), (Sentences(sentences=3, length=5), TEXTS), (Tokens(), np.array([[1, 2, 0]] * 4))],
)
def test_networks_for_texts_ignore_what_is_not_chosen(masker, X):  # noqa: N803
    torch.manual_seed(0)
    items = masker.fit(X).encode(X)
    selector, predictor = masker.selector().eval(), masker.predictor(3).eval()
    assert selector(items.codes).shape == items.present.shape
    mask = items.present.float()
    mask[:, 1:] = 0
    changed = items.codes.clone()
    changed[:, 1:] = 0
    torch.testing.assert_close(predictor(items.codes, mask), predictor(changed, mask))
    assert predictor(items.codes, torch.zeros_like(mask)).isfinite().all()


@pytest.mark.parametrize(
    ("masker", "X", "message"),
    [
        (Words(), "one text", "put it in a list"),
        (Words(), ["a", None], "None of type NoneType in row 1"),
        (Words(), ["!", ""], "texts must have words"),
        (Words(), None, "pass a list of texts"),
        (Words(length=0), TEXTS, "length must be at least 1, but got 0"),
        (Words(length=-1), TEXTS, "length must be at least 1, but got -1"),
        (Words(length=2.5), TEXTS, "length must be an int, but got 2.5"),
        (Words(vocabulary=0), TEXTS, "vocabulary must be at least 1, but got 0"),
        (Words(filler=None), TEXTS, "filler must be a builtins.str, but got None"),
        (Sentences(sentences=0), TEXTS, "sentences must be at least 1, but got 0"),
        (Sentences(length=0), TEXTS, "length must be at least 1, but got 0"),
        (Sentences(vocabulary=-1), TEXTS, "vocabulary must be at least 1, but got -1"),
        (Words(), pyarrow.table({"review": TEXTS}), "got a data frame: pass one column"),
        (Sentences(), pyarrow.table({"review": TEXTS}), "got a data frame: pass one column"),
        (Columns(), [["a", "b"]], "must consist of numbers"),
        (Columns(), [[1.0, np.nan]], "nan in row 0, column 1"),
        (Columns(), [1.0, 2.0], "shape"),
        (Columns(groups=[[0], [0]]), [[1.0, 2.0]], "there twice"),
        (Columns(groups=[[0]]), [[1.0, 2.0]], "column '1' is in none"),
        (Columns(groups=[[0], ["pay"]]), [[1.0, 2.0]], "'pay'"),
        (Columns(baseline=[1.0]), [[1.0, 2.0]], "each of the 2 columns"),
        (Tokens(), [[1.0]], "whole numbers"),
        (Tokens(), [[-1, 2]], "negative"),
        (Patches(), np.zeros((2, 3)), "images must have shape"),
        (Patches(), np.full((1, 2, 2), np.nan), "finite"),
        (Patches(size=0), np.zeros((1, 2, 2)), "size must be at least 1"),
    ],
)
def test_bad_rows(masker, X, message):  # noqa: N803
    with pytest.raises(KhotError, match=message):
        masker.fit(X)


def test_other_shapes_than_in_fit():
    for masker, X, other in [  # noqa: N806
        (Columns(), np.zeros((2, 3)), np.zeros((2, 4))),
        (Tokens(), np.ones((2, 3), int), np.ones((2, 4), int)),
        (Patches(), np.zeros((2, 4, 4)), np.zeros((2, 4, 5))),
    ]:
        with pytest.raises(KhotError, match="as in fit"):
            masker.fit(X).encode(other)
