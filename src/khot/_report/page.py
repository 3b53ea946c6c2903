"""Self-contained HTML pages: text, tables and pictures in one file that works without a network."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khot._files import write_text


@dataclass(frozen=True)
class Section:
    """A part of a page: a text, perhaps a table in plain text, and PNG pictures."""

    heading: str
    text: str
    table: str = ""
    pictures: Sequence[Path] = ()


def write_page(path: Path, title: str, introduction: str, sections: Sequence[Section]) -> None:
    """Write a page that contains its pictures."""
    write_text(path, render("page.html", title=title, introduction=introduction, sections=sections))


def render(template: str, **values: Any) -> str:
    """Fill in a template of `khot._report`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("khot._report"), autoescape=True, undefined=StrictUndefined)
    environment.filters["base64"] = lambda picture: base64.b64encode(picture.read_bytes()).decode()
    return environment.get_template(template).render(**values)
