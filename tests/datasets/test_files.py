"""Where files are looked for, and the errors for files that cannot be used."""

import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest
import scipy.sparse

from khot.datasets import _files, load
from khot.errors import DataFileError, DownloadError, KhotError
from tests.datasets.conftest import Web
from tests.datasets.official import REVIEWS_CSV, TINY, digest, idx, mat

MNIST = TINY["mnist"].files
LABELS = "MNIST/raw/train-labels-idx1-ubyte.gz"
IMAGES = "MNIST/raw/train-images-idx3-ubyte.gz"
BATCH = "cifar-10-batches-bin/data_batch_2.bin"
REVIEWS = "IMDB/train.csv.xz"
NEWS = "20news_w100.mat"
REAL_CACHE = _files.cache


def error_of(name: str) -> str:
    with pytest.raises(DataFileError) as raised:
        load(name)
    assert isinstance(raised.value, KhotError)
    assert isinstance(raised.value, OSError)
    assert not isinstance(raised.value, DownloadError)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def put_all(put: Callable, folder: Path, name: str) -> None:
    for path, content in TINY[name].files.items():
        put(folder, path, content)


def test_the_cache_is_that_of_the_user():
    assert REAL_CACHE() == Path(pooch.os_cache("khot"))


def test_the_folder_goes_before_the_cache(folder: Path, cache: Path, put: Callable):
    for place in (folder, cache):
        put_all(put, place, "mnist")
    assert all(file.is_relative_to(folder) for file in load("mnist").files)


def test_the_cache_fills_in_what_the_folder_lacks(folder: Path, cache: Path, put: Callable, web: Web):
    put_all(put, folder, "mnist")
    (folder / LABELS).rename(put(cache, LABELS, b""))
    files = load("mnist").files
    assert [file.is_relative_to(cache) for file in files] == [False, True, False, False]
    assert web.asked == []


def test_a_damaged_file_in_the_folder_is_not_passed_over(folder: Path, cache: Path, put: Callable):
    put_all(put, folder, "mnist")
    put_all(put, cache, "mnist")
    put(folder, LABELS, b"other")
    assert str(folder / LABELS) in error_of("mnist")


def test_an_empty_variable_counts_as_none(cache: Path, put: Callable, monkeypatch: pytest.MonkeyPatch):
    put_all(put, cache, "mnist")
    monkeypatch.setenv("KHOT_DATA", "")
    assert load("mnist").files[0].is_relative_to(cache)


@pytest.mark.parametrize("kind", ["nothing", "file"])
def test_a_variable_that_is_not_a_folder(
    kind: str, tmp_path: Path, cache: Path, put: Callable, monkeypatch: pytest.MonkeyPatch, web: Web
):
    (tmp_path / "file").touch()
    put_all(put, cache, "mnist")
    assert load("mnist").name == "mnist"
    monkeypatch.setenv("KHOT_DATA", str(tmp_path / kind))
    assert f"KHOT_DATA must be a folder, but {tmp_path / kind} is not one" in error_of("mnist")
    assert web.asked == []


@pytest.mark.parametrize("where", ["folder", "cache"])
@pytest.mark.parametrize("path", [LABELS, BATCH, NEWS])
@pytest.mark.parametrize("damage", ["changed", "truncated", "empty"])
def test_a_wrong_checksum(where: str, path: str, damage: str, put: Callable, request: pytest.FixtureRequest):
    place = request.getfixturevalue(where)
    name = next(name for name, tiny in TINY.items() if path in tiny.files)
    put_all(put, place, name)
    right = TINY[name].files[path]
    wrong = {"changed": right[:-1] + bytes([right[-1] ^ 1]), "truncated": right[:-1], "empty": b""}[damage]
    put(place, path, wrong)
    message = error_of(name)
    algorithm = {LABELS: "sha256", BATCH: "sha1", NEWS: "sha256"}[path]
    expected, got = (digest(algorithm, content).split(":")[1] for content in (right, wrong))
    assert f"{place / path} cannot be used: its {algorithm} must be {expected}, but is {got}" in message
    assert "delete it to download it again" in message
    put(place, path, right)
    assert load(name).name == name


@pytest.mark.parametrize(("path", "name"), [(LABELS, "mnist"), (REVIEWS, "imdb")])
@pytest.mark.parametrize("kind", ["dangling link", "folder"])
def test_something_that_is_not_a_file(path: str, name: str, kind: str, folder: Path, put: Callable, web: Web):
    put_all(put, folder, name)
    assert load(name).name == name
    (folder / path).unlink()
    if kind == "folder":
        (folder / path).mkdir()
    else:
        (folder / path).symlink_to(folder / "nowhere")
    assert f"{folder / path} cannot be used" in error_of(name)
    assert web.asked == []


def csv_xz(text: str) -> bytes:
    return lzma.compress(text.encode())


ROWS = REVIEWS_CSV["train"]
DOCUMENTS, GROUPS = scipy.sparse.csc_matrix(np.ones((100, 7))), np.ones((1, 7))
BROKEN = {
    "gzip ends early": (LABELS, MNIST[LABELS][:-9], "EOFError"),
    "not gzip": (LABELS, b"hello", "BadGzipFile"),
    "labels for images": (IMAGES, MNIST[LABELS], "must begin with 00000803 00000007 0000001c 0000001c, but"),
    "images of another size": (IMAGES, idx(np.zeros((7, 27, 28), np.uint8)), "00000007 0000001b 0000001c"),
    "too few images": (IMAGES, idx(np.zeros((6, 28, 28), np.uint8)), "00000006"),
    "fewer bytes than the header says": (
        LABELS,
        gzip.compress(gzip.decompress(MNIST[LABELS])[:-1]),
        "must hold 7 values, but holds 6",
    ),
    "no such class": (LABELS, idx(np.full(7, 10, np.uint8)), "between 0 and 9, but one is 10"),
    "batch too long": (BATCH, TINY["cifar10"].files[BATCH] + b"0", "must have 12292 bytes, but has 12293"),
    "no such class of image": (BATCH, b"\x0a" * (4 * 3073), "between 0 and 9, but one is 10"),
    "xz ends early": (REVIEWS, csv_xz(ROWS)[:-9], "EOFError"),
    "xz with a wrong byte": (REVIEWS, csv_xz(ROWS)[:60] + b"\0\0" + csv_xz(ROWS)[62:], "LZMAError"),
    "empty table": (REVIEWS, csv_xz(""), r"columns must be ['id', 'text', 'label'], but are []"),
    "other columns": (REVIEWS, csv_xz(ROWS.replace("text", "review", 1)), "but are ['id', 'review', 'label']"),
    "too few reviews": (REVIEWS, csv_xz(ROWS[: ROWS.rindex("10_4")]), "must have 5 rows, but has 4"),
    "no such sentiment": (REVIEWS, csv_xz(ROWS[:-2] + "7\n"), "row 4 must be an id, a text and a label 0 or 1"),
    "a column too few": (REVIEWS, csv_xz(ROWS[:-3] + "\n"), "row 4 must be"),
    "not UTF-8": (REVIEWS, lzma.compress(b"\xff"), "UnicodeDecodeError"),
    "not a mat file": (NEWS, b"hello" * 100, "ValueError"),
    "dense documents": (NEWS, mat(np.ones((100, 7)), GROUPS), "sparse matrix of 100 words by 7 documents"),
    "transposed documents": (NEWS, mat(DOCUMENTS.T, GROUPS), "sparse matrix of 100 words by 7 documents"),
    "no such group": (NEWS, mat(DOCUMENTS, 5 * GROUPS), "7 numbers between 1 and 4"),
    "too few groups": (NEWS, mat(DOCUMENTS, GROUPS[:, :6]), "7 numbers between 1 and 4"),
}


@pytest.mark.parametrize(("path", "content", "problem"), BROKEN.values(), ids=BROKEN)
def test_structure_is_verified_even_if_the_checksum_is_right(
    path: str, content: bytes, problem: str, folder: Path, put: Callable
):
    name = next(name for name, tiny in TINY.items() if path in tiny.files)
    put_all(put, folder, name)
    assert load(name).name == name
    put(folder, path, content, right=True)
    message = error_of(name)
    assert f"{folder / path} cannot be used: " in message
    assert problem in message


def test_another_number_of_rows_is_expected(folder: Path, put: Callable, sources: dict):
    put_all(put, folder, "cifar10")
    assert load("cifar10").name == "cifar10"
    sources[BATCH] = replace(sources[BATCH], rows=5)
    assert "must have 15365 bytes, but has 12292" in error_of("cifar10")
