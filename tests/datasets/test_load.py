"""Every dataset has the right rows, from a local folder and from the web."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pytest

from khot.datasets import NAMES, Dataset, Rows, _sources, load
from khot.errors import InvalidValueError, KhotError
from tests.datasets.conftest import Answer, Web
from tests.datasets.official import TINY, Tiny

HEX_DIGITS = {"sha256": 64, "sha1": 40, "md5": 32}
PUBLISHED = dict(_sources.FILES)  # the real table, before a fixture replaces it

every_dataset = pytest.mark.parametrize("name", TINY)


def same(rows: Rows, expected: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    inputs, labels, ids = expected
    assert rows.inputs.dtype == inputs.dtype
    assert rows.labels.dtype == np.int64
    np.testing.assert_array_equal(rows.inputs, inputs)
    np.testing.assert_array_equal(rows.labels, labels)
    np.testing.assert_array_equal(rows.ids, ids)
    assert len(rows) == len(labels)
    assert rows.inputs.flags.writeable
    assert rows.inputs.flags.c_contiguous


def check(dataset: Dataset, name: str, tiny: Tiny) -> None:
    assert dataset.name == name
    same(dataset.train, tiny.train)
    same(dataset.test, tiny.test)
    assert dataset.train.labels.max() < len(dataset.classes)
    assert urlparse(dataset.origin).scheme in ("http", "https")


@every_dataset
def test_from_a_local_folder(name: str, folder: Path, cache: Path, web: Web, put: Callable):
    places = [put(folder, path, content) for path, content in TINY[name].files.items()]
    dataset = load(name)
    check(dataset, name, TINY[name])
    assert set(dataset.files) == set(places)
    assert web.asked == []
    assert not cache.exists()


@every_dataset
def test_from_the_web(name: str, cache: Path, web: Web):
    published = TINY[name].published
    web.answers = {path: Answer(content) for path, content in published.items()}
    check(load(name), name, TINY[name])
    assert sorted(web.asked) == sorted(published)
    kept = {place for place in cache.rglob("*") if place.is_file()}
    assert kept == {cache / path for path in TINY[name].files}  # no archive, no half-written file
    web.answers = {}
    check(load(name), name, TINY[name])
    assert len(web.asked) == len(published)


@every_dataset
def test_a_copy_of_the_cache_is_a_local_folder(name: str, cache: Path, web: Web, monkeypatch: pytest.MonkeyPatch):
    web.answers = {path: Answer(content) for path, content in TINY[name].published.items()}
    load(name)
    monkeypatch.setenv("KHOT_DATA", str(cache.rename(cache.with_name("copy"))))
    web.answers = {}
    check(load(name), name, TINY[name])


def test_digits():
    digits = load("digits")
    assert digits.files == ()
    assert digits.classes == tuple("0123456789")
    assert (digits.train.inputs.shape, digits.test.inputs.shape) == ((1437, 8, 8), (360, 8, 8))
    assert (digits.train.inputs.dtype, digits.train.inputs.max()) == (np.uint8, 16)
    assert sorted([*digits.train.ids, *digits.test.ids]) == list(range(1797))
    everyone = np.bincount([*digits.train.labels, *digits.test.labels])
    np.testing.assert_allclose(np.bincount(digits.test.labels), everyone * 360 / 1797, atol=1)
    np.testing.assert_array_equal(load("digits").test.ids, digits.test.ids)


@pytest.mark.parametrize("name", ["MNIST", "", None, 3, ["mnist"]])
def test_an_unknown_name(name: object):
    with pytest.raises(InvalidValueError, match="name must be a dataset that khot knows") as raised:
        load(name)
    assert isinstance(raised.value, KhotError)
    assert all(known in str(raised.value) for known in NAMES)
    assert repr(name) in str(raised.value)
    assert load("digits").name == "digits"


def test_every_name_is_tested():
    assert set(NAMES) == {*TINY, "digits"}


def test_rows_show_shapes_and_not_contents():
    assert repr(load("digits").test) == "Rows(inputs=uint8[360, 8, 8], labels=int64[360])"


def test_heavy_packages_load_only_when_used():
    heavy = ("torch", "pooch", "requests", "scipy", "sklearn", "tqdm")
    code = f"import khot.datasets, sys; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_table_of_sources_is_well_formed():
    for path, source in PUBLISHED.items():
        assert source.path == path
        assert all(url.endswith(f"/{Path(path).name}") for url in source.urls)
        if source.checksum:
            algorithm, digits = source.checksum.split(":")
            assert len(bytes.fromhex(digits)) * 2 == HEX_DIGITS[algorithm]
        else:
            assert not source.urls, f"{path} would be downloaded unverified"
    assert len(PUBLISHED["MNIST/raw/train-images-idx3-ubyte.gz"].urls) > 1
    assert sum(source.rows for source in PUBLISHED.values()) == 2 * (120_000 + 20_000) + 60_000 + 50_000 + 16_242
