"""Write the help of every command to `reference/generated/cli.txt`, which the page of the command line includes."""

import re
from pathlib import Path

from khot.cli import app as commands

_TITLE = re.compile(r"^(\.\. _cyclopts-([\w-]+):\n\n)(?:=+\n)?[\w-]+\n(\W)\3+\n", re.MULTILINE)
_CONTENTS = re.compile(r"^\.\. contents::.*\n(?:   .*\n)*", re.MULTILINE)


def _full_name(match):
    """The title of a command with the names of the commands above it."""
    name = match[2].replace("-", " ")
    return f"{match[1]}{name}\n{match[3] * len(name)}\n"


def _write(app):
    text = commands.generate_docs(output_format="rst", heading_level=2)
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "cli.txt").write_text(_TITLE.sub(_full_name, _CONTENTS.sub("", text)), encoding="utf-8")


def setup(app):
    """Write before the pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
