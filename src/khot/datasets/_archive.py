"""Safe reading of downloaded archives.

Only the wanted members are read, into memory; nothing is extracted to disk. An archive with a link, a device or a path
that leads outside is refused as a whole.
"""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from khot.datasets._files import reading, unusable


def members(archive: Path, wanted: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield the name, as a match, and the content of each file in a tar archive whose whole name matches `wanted`."""
    with reading(archive), tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if not (member.isfile() or member.isdir()):
                raise unusable(archive, f"its member {member.name} is neither a file nor a folder")
            if path.is_absolute() or ".." in path.parts:
                raise unusable(archive, f"its member {member.name} leads outside")
            name = wanted.fullmatch(member.name)
            content = tar.extractfile(member) if name else None
            if name and content:
                yield name, content.read()
