"""Downloads: what arrives has the right checksum, or is not kept."""

import hashlib
import sys
from functools import partial
from pathlib import Path

from khot._files import new_file
from khot.datasets._sources import Source
from khot.errors import DownloadError

_TIMEOUT = 30  # seconds without a sign of life


def download(source: Source, place: Path) -> None:
    """Download a file from the first of its addresses that has it undamaged."""
    from requests import RequestException

    problems = []
    for url in source.urls:
        try:
            return _download_from(url, source.checksum, place)
        except (RequestException, DownloadError) as error:
            problems.append(f"{url}: {_reason(error)}")
    raise DownloadError(
        f"{source.path} could not be downloaded ({'; '.join(problems)}): try again later, or set the environment "
        f"variable KHOT_DATA to a folder that has it as {source.path}"
    )


def _reason(error: Exception) -> object:
    """What went wrong. Where requests wraps a failed connection, the wrapped error says it in fewer words."""
    return getattr(error.args[0], "reason", error) if error.args else error


def _download_from(url: str, checksum: str | None, place: Path) -> None:
    with new_file(place) as part:
        _fetch(url, part)
        if problem := checksum_problem(part, checksum):
            raise DownloadError(problem)


def _fetch(url: str, place: Path) -> None:
    import pooch

    # A server that took the .gz for its own compression would have the file unpacked on the way.
    as_it_is = {"Accept-Encoding": "identity"}
    on_terminal = sys.stderr.isatty()
    fetch = pooch.HTTPDownloader(progressbar=on_terminal, chunk_size=2**16, timeout=_TIMEOUT, headers=as_it_is)
    fetch(url, str(place), None)


def checksum_problem(place: Path, checksum: str | None) -> str | None:
    """How a file differs from its checksum, or None if it doesn't or none is known."""
    if checksum is None:
        return None
    algorithm, expected = checksum.split(":")
    with place.open("rb") as file:
        got = hashlib.file_digest(file, partial(hashlib.new, algorithm, usedforsecurity=False)).hexdigest()
    return None if got == expected else f"its {algorithm} must be {expected}, but is {got}"
