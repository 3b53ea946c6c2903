"""MNIST and Fashion-MNIST in the idx format: a magic number, the shape in big-endian words, the bytes."""

import gzip
import struct
from pathlib import Path

import numpy as np

from khot.datasets import _sources
from khot.datasets._files import check_ten_classes, obtain, reading, unusable
from khot.datasets.rows import Dataset, Rows, numbered

_UNSIGNED_BYTES = 0x0800  # the magic number is this plus the number of axes
_DIGITS = tuple("0123456789")
_CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def load_mnist() -> Dataset:
    """Load handwritten digits (LeCun, Cortes, Burges)."""
    return _load("mnist", "MNIST/raw", _DIGITS, "http://yann.lecun.com/exdb/mnist/")


def load_fashion_mnist() -> Dataset:
    """Load photographs of clothes (Xiao, Rasul, Vollgraf, 2017)."""
    return _load("fashion-mnist", "FashionMNIST/raw", _CLOTHES, "https://github.com/zalandoresearch/fashion-mnist")


def _load(name: str, folder: str, classes: tuple[str, ...], origin: str) -> Dataset:
    train, train_files = _rows(f"{folder}/train")
    test, test_files = _rows(f"{folder}/t10k")
    return Dataset(name, train, test, classes, origin, (*train_files, *test_files))


def _rows(prefix: str) -> tuple[Rows, list[Path]]:
    images, images_file = _array(f"{prefix}-images-idx3-ubyte.gz", (28, 28))
    labels, labels_file = _array(f"{prefix}-labels-idx1-ubyte.gz", ())
    check_ten_classes(labels_file, labels)
    return numbered(images, labels), [images_file, labels_file]


def _array(path: str, row_shape: tuple[int, ...]) -> tuple[np.ndarray, Path]:
    """The bytes of an idx file as an array, and the file."""
    file = obtain(path)
    shape = (_sources.FILES[path].rows, *row_shape)
    header = struct.pack(f">{len(shape) + 1}I", _UNSIGNED_BYTES + len(shape), *shape)
    with reading(file), gzip.open(file) as stream:
        content = stream.read()
    if not content.startswith(header):
        got = content[: len(header)].hex(" ", -4)
        raise unusable(file, f"unpacked it must begin with {header.hex(' ', -4)}, but begins with {got}")
    values = np.frombuffer(content, np.uint8, offset=len(header))
    if values.size != np.prod(shape):
        raise unusable(file, f"it must hold {np.prod(shape)} values, but holds {values.size}")
    return values.reshape(shape).copy(), file
