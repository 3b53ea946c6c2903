"""Archives: wanted members are read, and dangerous archives are refused."""

import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from khot.datasets import load
from khot.errors import DataFileError
from tests.datasets.conftest import Answer, Web
from tests.datasets.official import REVIEWS_CSV, TINY, digest, tar

CIFAR, IMDB = "cifar-10-binary.tar.gz", "aclImdb_v1.tar.gz"
BATCHES = TINY["cifar10"].files


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


HARMFUL = {
    "escape": tar({"cifar-10-batches-bin/../../evil": b"!", **BATCHES}),
    "absolute": tar({"/khot-evil": b"!", **BATCHES}),
    "link": tar(BATCHES, special("evil", tarfile.SYMTYPE, "/etc/passwd")),
    "wanted link": tar(BATCHES, special("cifar-10-batches-bin/test_batch.bin", tarfile.SYMTYPE, "evil")),
    "inner link": tar(BATCHES, special("cifar-10-batches-bin/evil", tarfile.SYMTYPE, "test_batch.bin")),
    "hard link": tar(BATCHES, special("evil", tarfile.LNKTYPE, "cifar-10-batches-bin/test_batch.bin")),
    "device": tar(BATCHES, special("evil", tarfile.CHRTYPE)),
    "pipe": tar(BATCHES, special("evil", tarfile.FIFOTYPE)),
}


@pytest.mark.parametrize("content", HARMFUL.values(), ids=HARMFUL)
def test_a_dangerous_member_is_refused(content: bytes, tmp_path: Path, folder: Path, put: Callable):
    archive = put(folder, CIFAR, content, right=True)
    with pytest.raises(DataFileError, match=r"its member .* (leads outside|is neither a file nor a folder)") as raised:
        load("cifar10")
    assert str(archive) in str(raised.value)
    assert [place for place in tmp_path.rglob("*") if not place.is_dir()] == [archive]
    assert not Path("/khot-evil").exists()
    put(folder, CIFAR, tar(BATCHES), right=True)
    assert len(load("cifar10").test) == 4


@pytest.mark.parametrize(("name", "archive"), [("cifar10", CIFAR), ("imdb", IMDB)])
def test_an_archive_in_the_folder_is_used_and_kept(
    name: str, archive: str, folder: Path, cache: Path, put: Callable, web: Web
):
    place = put(folder, archive, TINY[name].published[archive])
    dataset = load(name)
    assert len(dataset.train) == len(TINY[name].train[1])
    assert all(file.is_relative_to(cache) for file in dataset.files)
    assert place.exists()
    assert web.asked == []


def test_a_damaged_archive(folder: Path, cache: Path, put: Callable):
    right = TINY["imdb"].published[IMDB]
    put(folder, IMDB, right[:-1])
    with pytest.raises(DataFileError, match="cannot be used: its md5 must be") as raised:
        load("imdb")
    assert all(digest("md5", content)[4:] in str(raised.value) for content in (right, right[:-1]))
    assert not cache.exists()
    put(folder, IMDB, right)
    assert len(load("imdb").test) == 2


def without_last(members: dict[str, bytes]) -> bytes:
    return tar(dict(list(members.items())[:-1]))


BROKEN = {
    "not an archive": ("imdb", IMDB, b"hello", "ReadError"),
    "ends early": ("imdb", IMDB, TINY["imdb"].published[IMDB][:-30], "EOFError"),
    "without reviews": ("imdb", IMDB, tar({"aclImdb/README": b""}), "it has no train reviews"),
    "not UTF-8": ("imdb", IMDB, tar({"aclImdb/train/pos/0_9.txt": b"\xff"}), "UnicodeDecodeError"),
    "a batch too few": ("cifar10", CIFAR, without_last(BATCHES), "it lacks cifar-10-batches-bin/test_batch.bin"),
}


@pytest.mark.parametrize(("name", "path", "content", "problem"), BROKEN.values(), ids=BROKEN)
def test_an_archive_that_cannot_be_used(
    name: str, path: str, content: bytes, problem: str, folder: Path, put: Callable
):
    place = put(folder, path, content, right=True)
    with pytest.raises(DataFileError) as raised:
        load(name)
    assert f"{place} cannot be used: " in str(raised.value)
    assert problem in str(raised.value)
    put(folder, path, TINY[name].published[path], right=True)
    assert load(name).name == name


def test_reviews_become_tables_of_the_documented_form(cache: Path, web: Web):
    web.answers[IMDB] = Answer(TINY["imdb"].published[IMDB])
    load("imdb")
    for part, text in REVIEWS_CSV.items():
        assert lzma.decompress((cache / f"IMDB/{part}.csv.xz").read_bytes()).decode() == text


def test_names_may_begin_with_a_dot(folder: Path, put: Callable):
    put(folder, CIFAR, tar({f"./{path}": content for path, content in BATCHES.items()}), right=True)
    assert len(load("cifar10").test) == 4


def test_one_missing_file_is_taken_from_the_archive(folder: Path, cache: Path, put: Callable, web: Web):
    *most, last = BATCHES
    for path in most:
        put(folder, path, BATCHES[path])
    web.answers[CIFAR] = Answer(TINY["cifar10"].published[CIFAR])
    files = load("cifar10").files
    assert [file.is_relative_to(folder) for file in files] == [True] * 5 + [False]
    assert files[-1] == cache / last
