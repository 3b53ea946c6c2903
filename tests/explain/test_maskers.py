import numpy as np
import pyarrow
import pytest
import scipy.sparse
import torch

from khot.errors import KhotError
from khot.explain import Columns, Explanation, Patches, Sentences, Tokens, Words
from tests.explain.chosen import HALF, TEXTS, flags


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
