"""Finding the files of datasets: in the folder KHOT_DATA, in the user's cache, or by a download to the cache."""

import csv
import lzma
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from khot.datasets import _sources
from khot.datasets._download import checksum_problem, download
from khot.errors import DataFileError

_UNREADABLE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, csv.Error, tarfile.TarError)


def obtain(path: str) -> Path:
    """Find or download the file with this path in a data folder, and verify its checksum."""
    source = _sources.FILES[path]
    file = _find(path)
    if file is None:
        file = cache() / path
        download(source, file)
        return file
    with reading(file):
        problem = checksum_problem(file, source.checksum)
    if problem:
        raise unusable(file, problem)
    return file


def obtain_unpacked(paths: Sequence[str], archive: str, unpack: Callable[[Path, Path], None]) -> list[Path]:
    """Find files that are published in an archive; if one is missing, `unpack(archive, folder)` fills the cache."""
    if any(_find(path) is None for path in paths):
        if _find(archive) is not None:
            unpack(obtain(archive), cache())
        else:
            cache().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache(), prefix=".") as folder:
                downloaded = Path(folder) / archive
                download(_sources.FILES[archive], downloaded)
                unpack(downloaded, cache())
    return [obtain(path) for path in paths]


def cache() -> Path:
    """The folder for downloads."""
    import pooch

    return Path(pooch.os_cache("khot"))


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn whatever goes wrong in reading a file into an error that names the file and says what to do."""
    try:
        yield
    except DataFileError:
        raise
    except _UNREADABLE as error:
        raise unusable(file, f"{type(error).__name__}, {error}") from error


def unusable(file: Path, problem: str) -> DataFileError:
    """The error for a file that exists but cannot be used."""
    return DataFileError(f"{file} cannot be used: {problem}: replace it, or delete it to download it again")


def check_ten_classes(file: Path, labels: np.ndarray) -> None:
    """Refuse a file with labels above 9."""
    if labels.max() > 9:
        raise unusable(file, f"labels must lie between 0 and 9, but one is {labels.max()}")


def _find(path: str) -> Path | None:
    """The file in the first folder that has it. A dangling link counts, so that it is reported and not skipped."""
    return next((folder / path for folder in _folders() if os.path.lexists(folder / path)), None)


def _folders() -> Iterator[Path]:
    if variable := os.environ.get("KHOT_DATA"):
        folder = Path(variable).expanduser()
        if not folder.is_dir():
            raise DataFileError(f"KHOT_DATA must be a folder, but {variable} is not one: correct it, or unset it")
        yield folder
    yield cache()
