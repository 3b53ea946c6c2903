"""CIFAR-10 in its binary version: for each image a byte with the label, then the red, green and blue planes."""

import re
from pathlib import Path

import numpy as np

from khot._files import new_file
from khot.datasets import _sources
from khot.datasets._archive import members
from khot.datasets._files import check_ten_classes, obtain_unpacked, reading, unusable
from khot.datasets.rows import Dataset, numbered

_FOLDER = "cifar-10-batches-bin"
_PATHS = [*[f"{_FOLDER}/data_batch_{i}.bin" for i in range(1, 6)], f"{_FOLDER}/test_batch.bin"]
_MEMBER = re.compile(rf"(?:\./)?({_FOLDER}/(?:data_batch_[1-5]|test_batch)\.bin)")
_IMAGE = (3, 32, 32)
_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def load() -> Dataset:
    """Load photographs of ten classes (Krizhevsky, 2009)."""
    files = obtain_unpacked(_PATHS, "cifar-10-binary.tar.gz", _unpack)
    batches = [_read(path, file) for path, file in zip(_PATHS, files, strict=True)]
    images, labels = (np.concatenate(parts) for parts in zip(*batches[:5], strict=True))
    origin = "https://www.cs.toronto.edu/~kriz/cifar.html"
    return Dataset("cifar10", numbered(images, labels), numbered(*batches[5]), _CLASSES, origin, tuple(files))


def _read(path: str, file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 32, 32, 3) and labels (n,) of one file."""
    rows, width = _sources.FILES[path].rows, 1 + int(np.prod(_IMAGE))
    with reading(file):
        values = np.fromfile(file, np.uint8)
    if values.size != rows * width:
        raise unusable(file, f"it must have {rows * width} bytes, but has {values.size}")
    labels, images = np.split(values.reshape(rows, width), [1], axis=1)
    check_ten_classes(file, labels)
    return np.ascontiguousarray(images.reshape(rows, *_IMAGE).transpose(0, 2, 3, 1)), labels[:, 0]


def _unpack(archive: Path, folder: Path) -> None:
    batches = {name[1]: content for name, content in members(archive, _MEMBER)}
    if missing := set(_PATHS) - set(batches):
        raise unusable(archive, f"it lacks {', '.join(sorted(missing))}")
    for path, content in batches.items():
        with new_file(folder / path) as part:
            part.write_bytes(content)
