"""Downloads that are kept only if their checksum is right."""

import hashlib
import sys
from functools import partial
from pathlib import Path

from khot._files import new_file
from khot.datasets._sources import Source
from khot.errors import DownloadError

_TIMEOUT = 30  # seconds without data


def download(source: Source, target: Path) -> None:
    """Download a file from the first of its addresses that serves it undamaged."""
    import pooch
    from requests import RequestException

    # Some servers declare a .gz file as compressed for transport, and the client would then unpack it.
    no_unpacking = {"Accept-Encoding": "identity"}
    on_terminal = sys.stderr.isatty()
    fetch = pooch.HTTPDownloader(progressbar=on_terminal, chunk_size=2**16, timeout=_TIMEOUT, headers=no_unpacking)
    problems = []
    for url in source.urls:
        try:
            with new_file(target) as part:
                fetch(url, str(part), None)
                if problem := checksum_problem(part, source.checksum):
                    raise DownloadError(problem)
            return
        except (RequestException, DownloadError) as error:
            problems.append(f"{url}: {_reason(error)}")
    raise DownloadError(
        f"{source.path} could not be downloaded ({'; '.join(problems)}): try again later, or set the environment "
        f"variable KHOT_DATA to a folder that holds it as {source.path}"
    )


def _reason(error: Exception) -> object:
    """The cause of a failed download; for a failed connection, the error that requests has wrapped is shorter."""
    return getattr(error.args[0], "reason", error) if error.args else error


def checksum_problem(file: Path, checksum: str | None) -> str | None:
    """Describe how a file differs from its checksum; None if it does not, or if there is no checksum."""
    if checksum is None:
        return None
    algorithm, expected = checksum.split(":")
    with file.open("rb") as stream:
        got = hashlib.file_digest(stream, partial(hashlib.new, algorithm, usedforsecurity=False)).hexdigest()
    return None if got == expected else f"its {algorithm} must be {expected}, but is {got}"
