"""Tiny datasets in the official formats, with the rows to expect; they share no code with the package."""

import gzip
import hashlib
import io
import lzma
import struct
import tarfile
from dataclasses import dataclass

import numpy as np
import scipy.io
import scipy.sparse

RANDOM = np.random.default_rng(0)
TRAIN, TEST = 7, 4  # rows per file


@dataclass
class Tiny:
    """Files of a data folder, the archive that is published instead, and the expected rows (inputs, labels, ids)."""

    files: dict[str, bytes]
    rows: dict[str, int]
    train: tuple[np.ndarray, np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray, np.ndarray]
    archive: dict[str, bytes] | None = None

    @property
    def published(self) -> dict[str, bytes]:
        return self.archive or self.files


def digest(checksum: str, content: bytes) -> str:
    """Checksum of `content` by the algorithm of another checksum."""
    algorithm = checksum.split(":")[0]
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def bytes_of(*shape: int, below: int = 256) -> np.ndarray:
    return RANDOM.integers(0, below, shape).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape)
    return gzip.compress(header + array.tobytes())


def mnist(folder: str) -> Tiny:
    files, rows, parts = {}, {}, []
    for part, n in (("train", TRAIN), ("t10k", TEST)):
        images, labels = bytes_of(n, 28, 28), bytes_of(n, below=10)
        for name, array in ((f"{part}-images-idx3-ubyte.gz", images), (f"{part}-labels-idx1-ubyte.gz", labels)):
            files[f"{folder}/{name}"], rows[f"{folder}/{name}"] = idx(array), n
        parts.append((images, labels, np.arange(n)))
    return Tiny(files, rows, *parts)


def tar(members: dict[str, bytes], *odd: tarfile.TarInfo) -> bytes:
    """A tar.gz of files, and of `odd` members that are not files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in odd:
            archive.addfile(info)
    return buffer.getvalue()


def cifar10() -> Tiny:
    files, images, labels = {}, [], []
    for name in (*[f"data_batch_{i}" for i in range(1, 6)], "test_batch"):
        images.append(bytes_of(TEST, 32, 32, 3))
        labels.append(bytes_of(TEST, below=10))
        records = [
            bytes([label]) + b"".join(image[:, :, channel].tobytes() for channel in range(3))
            for image, label in zip(images[-1], labels[-1], strict=True)
        ]
        files[f"cifar-10-batches-bin/{name}.bin"] = b"".join(records)
    train = (np.concatenate(images[:5]), np.concatenate(labels[:5]), np.arange(5 * TEST))
    archive = tar({**files, "cifar-10-batches-bin/readme.html": b"<html>"})
    test = (images[5], labels[5], np.arange(TEST))
    return Tiny(files, dict.fromkeys(files, TEST), train, test, {"cifar-10-binary.tar.gz": archive})


REVIEWS = {
    "train": [
        ("0_3", 'Plain, with a comma and "quotes"', 0),
        ("0_9", "Two lines<br /><br />and\ntwo\r\nmore", 1),
        ("2_1", "Ünïcode\x85 \u2028 日本", 0),
        ("2_10", "", 1),
        ("10_4", "ten comes after two", 0),
    ],
    "test": [("0_2", "bad", 0), ("0_7", "good", 1)],
}
REVIEWS_CSV = {
    "train": 'id,text,label\n0_3,"Plain, with a comma and ""quotes""",0\n'
    '0_9,"Two lines<br /><br />and\ntwo\r\nmore",1\n'
    "2_1,Ünïcode\x85 \u2028 日本,0\n2_10,,1\n10_4,ten comes after two,0\n",
    "test": "id,text,label\n0_2,bad,0\n0_7,good,1\n",
}


def imdb() -> Tiny:
    members = {
        f"aclImdb/{part}/{('neg', 'pos')[label]}/{name}.txt": text.encode()
        for part, reviews in REVIEWS.items()
        for name, text, label in reversed(reviews)
    }
    others = ["train/unsup/0_0.txt", "train/urls_pos.txt", "README", "test/labeledBow.feat", "train/pos/notes.txt"]
    archive = tar({**{f"aclImdb/{name}": b"not a review" for name in others}, **members})
    files = {f"IMDB/{part}.csv.xz": lzma.compress(text.encode()) for part, text in REVIEWS_CSV.items()}
    train, test = (
        (np.array(texts, object), np.array(labels), np.array(ids, object))
        for ids, texts, labels in (zip(*reviews, strict=True) for reviews in REVIEWS.values())
    )
    rows = {path: len(part) for path, part in zip(files, REVIEWS.values(), strict=True)}
    return Tiny(files, rows, train, test, {"aclImdb_v1.tar.gz": archive})


def mat(documents: object, groups: object) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"documents": documents, "newsgroups": groups, "wordlist": "unused"})
    return buffer.getvalue()


def newsgroups() -> Tiny:
    words, groups = bytes_of(TRAIN, 100, below=2), bytes_of(TRAIN, below=4)
    content = mat(scipy.sparse.csc_matrix(words.T.astype(float)), groups[None] + 1)
    nothing = (words[:0], groups[:0], np.arange(0))
    path = "20news_w100.mat"
    return Tiny({path: content}, {path: TRAIN}, (words, groups, np.arange(TRAIN)), nothing)


TINY = {
    "mnist": mnist("MNIST/raw"),
    "fashion-mnist": mnist("FashionMNIST/raw"),
    "cifar10": cifar10(),
    "imdb": imdb(),
    "20newsgroups-w100": newsgroups(),
}
