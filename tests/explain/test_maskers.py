import json
import time
import unicodedata

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse
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
    frame = pandas.DataFrame({"age": [1, 3], "pay": [10.0, 30.0]}, index=["x", "y"])
    masker = Columns(groups=[["pay"], ["age"]]).fit(frame)
    masked = masker.mask(frame, np.array([[True, False]] * 2))
    assert list(masked.columns) == ["age", "pay"]
    assert list(masked.index) == ["x", "y"]
    assert masked["age"].tolist() == [2, 2]
    assert masker.pieces(frame.iloc[0]) == [("pay = 10", 0), ("age = 1", 1)]


HALF = np.array([[True, False], [False, True]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_arrays_keep_their_dtype(dtype):
    X = np.array([[1, 10], [3, 30]], dtype=dtype)  # noqa: N806
    masked = Columns().fit(X).mask(X, HALF)
    assert masked.dtype == dtype
    np.testing.assert_array_equal(masked, [[1, 20], [2, 30]])


def test_whole_numbers_become_floats_where_the_baseline_is_none():
    X = np.array([[1, 10], [2, 30]])  # noqa: N806
    np.testing.assert_array_equal(Columns().fit(X).mask(X, HALF), [[1, 20], [1.5, 30]])
    large = np.array([[2**60 + 1, 0], [2**60 + 3, 0]])
    assert Columns(baseline=[0, 0]).fit(large).mask(large, HALF)[0, 0] == 2**60 + 1
    flags = np.array([[True, False], [False, False]])
    np.testing.assert_array_equal(Columns().fit(flags).mask(flags, HALF), [[1, 0], [0.5, 0]])


def test_lists_stay_lists():
    rows = [[1, 10], [3, 30]]
    assert Columns().fit(rows).mask(rows, HALF) == [[1, 20], [2, 30]]
    assert Tokens().fit(rows).mask(rows, HALF) == [[1, 0], [0, 30]]
    arrays = [np.array(row) for row in rows]
    assert isinstance(Columns().fit(arrays).mask(arrays, HALF)[0], np.ndarray)
    tensors = [torch.tensor(row) for row in rows]
    assert isinstance(Columns().fit(tensors).mask(tensors, HALF)[0], torch.Tensor)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.int32])
def test_tensors_stay_tensors(dtype):
    X = torch.tensor([[1, 10], [3, 30]], dtype=dtype).requires_grad_(dtype.is_floating_point)  # noqa: N806
    masker = Columns().fit(X)
    masked = masker.mask(X, HALF)
    assert (masked.dtype, masked.device, masked.requires_grad) == (dtype, X.device, False)
    assert masked.tolist() == [[1, 20], [2, 30]]
    assert masker.pieces(X[0]) == [("0 = 1", 0), ("1 = 10", 1)]


def test_tensors_of_whole_numbers():
    tokens = torch.tensor([[3, 4], [5, 6]])
    masked = Tokens().fit(tokens).mask(tokens, HALF)
    assert (masked.dtype, masked.tolist()) == (torch.int64, [[3, 0], [0, 6]])
    table = torch.tensor([[1, 10], [2, 30]])
    masked = Columns().fit(table).mask(table, HALF)
    assert (masked.dtype, masked.tolist()) == (torch.float32, [[1, 20], [1.5, 30]])
    images = torch.arange(16, dtype=torch.uint8).reshape(1, 4, 4)
    masked = Patches(size=2).fit(images).mask(images, flags(4, 0))
    assert (masked.dtype, masked[0, 0].tolist()) == (torch.uint8, [0, 1, 8, 8])


def test_tables_of_arrow_go_by_their_names():
    table = pyarrow.table({"age": [1, 3], "pay": [10.0, 30.0], "kids": [1, 2]})
    masker = Columns(groups=[["pay"], ["age", "kids"]]).fit(table)
    assert masker.names_ == ["age", "pay", "kids"]
    other = table.select(["kids", "pay", "age"])
    np.testing.assert_array_equal(masker.encode(other).codes, masker.encode(table).codes)
    masked = masker.mask(other, np.array([[True, False]] * 2))
    assert masked.to_pydict() == {"kids": [1.5, 1.5], "pay": [10.0, 30.0], "age": [2, 2]}
    assert masked.schema.field("age").type == pyarrow.int64()
    assert masker.pieces(other.slice(0, 1)) == [("pay = 10", 0), ("age = 1, kids = 1", 1)]
    with pytest.raises(KhotError, match="'age' is not there"):
        masker.encode(other.rename_columns(["kids", "pay", "years"]))
    np.testing.assert_array_equal(masker.encode(np.asarray(table)).codes, masker.encode(table).codes)
    named = Columns(names=["Age", "Pay", "Kids"]).fit(table)
    assert named.pieces(other.slice(0, 1))[0] == ("Age = 1", 0)


@pytest.mark.parametrize("package", [pandas, polars])
def test_data_frames_keep_the_types_of_columns(package):
    frame = package.DataFrame({"age": [1, 3], "pay": [10.0, 30.0], "kids": [1, 2]})
    frame = frame.astype({"age": "int32"}) if package is pandas else frame
    masker = Columns().fit(frame)
    other = frame[["kids", "pay", "age"]]
    masked = masker.mask(other, np.array([[False, True, False]] * 2))
    assert type(masked) is type(frame)
    assert list(masked.columns) == ["kids", "pay", "age"]
    assert (masked["age"].to_list(), masked["kids"].to_list()) == ([2, 2], [1.5, 1.5])
    assert (masked["age"].dtype, masked["pay"].dtype) == (frame["age"].dtype, frame["pay"].dtype)
    row = other.iloc[0] if package is pandas else other[0]
    assert masker.pieces(row) == [("age = 1", 0), ("pay = 10", 1), ("kids = 1", 2)]


def test_data_frames_with_numbers_for_names():
    frame = pandas.DataFrame([[1.0, 10.0], [3.0, 30.0]])
    masked = Columns().fit(frame).mask(frame[[1, 0]], HALF)
    pandas.testing.assert_frame_equal(masked, pandas.DataFrame({1: [20.0, 30.0], 0: [1.0, 2.0]})[[1, 0]])
    with pytest.raises(KhotError, match="different names"):
        Columns().fit(pandas.DataFrame([[1.0, 10.0]], columns=["a", "a"]))


def test_columns_that_are_constant_up_to_rounding_are_not_blown_up():
    X = np.column_stack([np.full(40, 0.1), np.arange(40.0)])  # noqa: N806
    masker = Columns().fit(X)
    assert masker.scale_[0] == 1
    assert masker.encode(X).codes[:, 0].abs().max() < 1e-6
    assert Patches().fit(np.full((4, 5, 5), 0.1)).scale_ == 1
    assert Columns().fit([[0.0], [5e-324]]).scale_ == [1.0]


def test_large_columns_have_finite_codes():
    X = np.array([[1e200, -1e300], [3e200, 1e300]])  # noqa: N806
    masker = Columns().fit(X)
    np.testing.assert_allclose(masker.encode(X).codes, [[-1, -1], [1, 1]], rtol=1e-6)
    np.testing.assert_allclose(Patches(2).fit(X[None]).encode(X[None]).codes[0, 0, 1], [0, 2**0.5], atol=1e-6)
    with pytest.raises(KhotError, match="'0' is not: divide it"):
        Columns().fit([[1e308], [-1.5e308]]).encode([[1.7e308]])
    with pytest.raises(KhotError, match="about as large as in fit"):
        Patches().fit(np.eye(4)[None]).encode(np.full((1, 4, 4), 1e200))


def test_columns_take_numbers_of_numpy():
    X = np.array([[1.0, 10.0], [3.0, 30.0]], np.float32)  # noqa: N806
    masker = Columns(groups=np.array([[1], [0]]), baseline=np.array([0, 5], np.float32), names=np.array(["a", "b"]))
    masker.fit(X)
    assert masker.pieces(X[0]) == [("b = 10", 0), ("a = 1", 1)]
    json.dumps([masker.groups, masker.baseline, masker.names])
    assert Patches(size=np.int64(2), baseline=np.float32(0.5)).fit(np.zeros((1, 4, 4))).baseline == 0.5


def test_long_numbers_are_shown_in_full():
    assert Columns(names=["id"]).fit([[1], [2]]).pieces([123456789]) == [("id = 123456789", 0)]
    assert Columns().fit([[1], [2]]).pieces(np.array([0.1], np.float32)) == [("0 = 0.1", 0)]
    assert Columns().fit([[1], [2]]).pieces(np.array([True])) == [("0 = 1", 0)]


@pytest.mark.parametrize(
    ("dtype", "baseline", "masked", "kind"),
    [
        (np.uint8, None, 8, np.uint8),  # the mean is 7.5
        (np.uint8, 255, 255, np.uint8),
        (np.uint8, -1, -1, np.float64),
        (np.uint8, 300, 300, np.float64),
        (np.int16, 0.5, 0.5, np.float64),
        (np.float32, 0.5, 0.5, np.float32),
        (np.float16, 1e6, 1e6, np.float64),
        (bool, None, 15 / 16, np.float64),
        (bool, 0, 0, bool),
    ],
)
def test_images_can_hold_their_baseline(dtype, baseline, masked, kind):
    images = np.arange(16).reshape(1, 4, 4).astype(dtype)
    masker = Patches(size=2, baseline=baseline).fit(images)
    found = masker.mask(images, flags(4, 0))
    assert (found.dtype, found[0, 3, 3], found[0, 1, 1]) == (kind, masked, images[0, 1, 1])
    coloured = images[..., None].repeat(3, -1)
    np.testing.assert_array_equal(
        Patches(size=2, baseline=baseline).fit(coloured).mask(coloured, flags(4, 0))[..., 1], found
    )


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


def test_padding_of_any_number_is_0_to_the_networks():
    X = np.array([[[1, 0], [3, 9]], [[9, 9], [2, 12]]])  # noqa: N806
    masker = Tokens(padding=9).fit(X[:1])
    items = masker.encode(X)
    assert items.codes.tolist() == [[[1, 9], [3, 0]], [[0, 0], [2, 9]]]
    assert items.present.tolist() == [[True, True], [False, True]]
    np.testing.assert_array_equal(masker.mask(X[:1], flags(2, 1)), [[[9, 9], [3, 9]]])
    with pytest.raises(KhotError, match="can hold padding, 300, but are uint8"):
        Tokens(padding=300).fit(X.astype(np.uint8)).mask(X.astype(np.uint8), np.ones((2, 2), bool))


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
        (Words(filler=None), TEXTS, "filler must be a str, but got None"),
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
        (Columns(groups=[[0], [1], []]), [[1.0, 2.0]], r"group 2 is \[\]"),
        (Columns(groups=["01"]), [[1.0, 2.0]], "group 0 is '01'"),
        (Columns(names=[]), [[1.0, 2.0]], "names must be 2"),
        (Columns(baseline=[1.0]), [[1.0, 2.0]], "each of the 2 columns"),
        (Columns(baseline=1.0), [[1.0, 2.0]], "each of the 2 columns"),
        (Columns(baseline=[1.0, np.inf]), [[1.0, 2.0]], "baseline must be finite"),
        (Columns(baseline=["a", "b"]), [[1.0, 2.0]], "baseline must be numbers"),
        (Columns(), [["1", "2"]], "must consist of numbers"),
        (Columns(), [[1.0, 2.0], [1.0]], "a table must be rows of one shape"),
        (Columns(), scipy.sparse.csr_array(np.eye(2)), r"convert it with .toarray\(\)"),
        (Columns(), torch.eye(2).to_sparse(), r"convert it with .to_dense\(\)"),
        (Tokens(), [[1.0]], "whole numbers"),
        (Tokens(), [[-1, 2]], "negative"),
        (Tokens(), [[1, 2], [3]], "tokens must be rows of one shape"),
        (Tokens(), [[1, 20_000_000]], "got 20000000: renumber"),
        (Tokens(), np.array([[2**64 - 1]], np.uint64), "renumber"),
        (Tokens(padding=2**40), [[1, 2]], "padding must be at most"),
        (Tokens(padding=-1), [[1, 2]], "padding must be at least 0"),
        (Tokens(padding=0.5), [[1, 2]], "padding must be an int"),
        (Patches(), np.zeros((2, 3)), "images must have shape"),
        (Patches(), np.full((1, 2, 2), np.nan), "finite"),
        (Patches(), [np.zeros((2, 2)), np.zeros((3, 3))], "images must be rows of one shape"),
        (Patches(), [[["a", "b"]]], "images must consist of numbers"),
        (Patches(baseline="white"), np.zeros((1, 2, 2)), "baseline must be a number"),
        (Patches(baseline=np.nan), np.zeros((1, 2, 2)), "baseline must be finite"),
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


def test_channels_come_last():
    with pytest.raises(KhotError, match="looks like"):
        Patches().fit(np.zeros((2, 3, 8, 8)))
    Patches().fit(np.zeros((2, 3, 8, 3)))
