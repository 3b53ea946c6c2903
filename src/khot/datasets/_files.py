"""Where a file is: the folder that KHOT_DATA names, the user's cache, or, after a download, the cache again."""

import csv
import lzma
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from khot.datasets import _sources
from khot.datasets._download import checksum_problem, download
from khot.errors import DataFileError

_UNREADABLE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, csv.Error, tarfile.TarError)


def obtain(path: str) -> Path:
    """The place of a file, its checksum verified. `path` is that within a data folder."""
    source = _sources.FILES[path]
    place = _find(path)
    if place is None:
        place = cache() / path
        download(source, place)
        return place
    with reading(place):
        problem = checksum_problem(place, source.checksum)
    if problem:
        raise unusable(place, problem)
    return place


def obtain_unpacked(paths: Sequence[str], archive: str, unpack: Callable[[Path, Path], None]) -> list[Path]:
    """The places of files that are published in an archive; if one is missing, `unpack` puts them into the cache."""
    if any(_find(path) is None for path in paths):
        if _find(archive) is not None:
            unpack(obtain(archive), cache())
        else:
            cache().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache(), prefix=".") as folder:
                place = Path(folder) / archive
                download(_sources.FILES[archive], place)
                unpack(place, cache())
    return [obtain(path) for path in paths]


def cache() -> Path:
    """The folder that downloads go to."""
    import pooch

    return Path(pooch.os_cache("khot"))


@contextmanager
def reading(place: Path) -> Iterator[None]:
    """Whatever goes wrong in reading a file, the error names the file and says what to do."""
    try:
        yield
    except DataFileError:
        raise
    except _UNREADABLE as error:
        raise unusable(place, f"{type(error).__name__}, {error}") from error


def unusable(place: Path, problem: str) -> DataFileError:
    """The error about a file that is there and no good."""
    return DataFileError(f"{place} cannot be used: {problem}: replace it, or delete it to have it downloaded anew")


def _find(path: str) -> Path | None:
    """The first folder's file. A dangling link counts, so that it is reported and not passed over."""
    return next((folder / path for folder in _folders() if os.path.lexists(folder / path)), None)


def _folders() -> Iterator[Path]:
    if named := os.environ.get("KHOT_DATA"):
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise DataFileError(f"KHOT_DATA names {named}, which is not a folder: correct it, or unset it")
        yield folder
    yield cache()
