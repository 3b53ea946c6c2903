"""HTML pages of explained rows."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from khot._files import write_text
from khot._report.page import render

STYLE = (
    ".khot { border-top: 1px solid #ddd; padding: .6rem 0; overflow-wrap: anywhere; } "
    ".khot mark { background: #ffe08a; border-radius: 3px; padding: 0 .15em; } "
    "table.khot td, table.khot th { vertical-align: top; text-align: left; padding: .4rem .8rem; } "
    ".khot .says { color: #555; font-size: .85rem; margin: .2rem 0; } "
    ".khot .beyond { color: #999; } "
    ".khot img { width: 12rem; }"
)


@dataclass(frozen=True)
class Shown:
    """A row of texts of which some are chosen, with a model's probabilities for all of them and for the chosen ones."""

    row: int
    items: list[str]
    chosen: list[int]
    full: list[float]
    masked: list[float]


def write_columns(
    path: Path, title: str, columns: Sequence[tuple[str, Sequence[Shown]]], classes: Sequence[str], introduction: str
) -> None:
    """Write a page with the same rows explained in different ways, one column for each way (heading, rows)."""
    rows = list(zip(*(rows for _, rows in columns), strict=True))
    about = {"title": title, "introduction": introduction, "style": STYLE, "classes": classes}
    write_text(path, render("columns.html", columns=columns, rows=rows, **about))


def write_explanations(path: Path, title: str, rows: Sequence[str], introduction: str = "") -> None:
    """Write a page of rows that are already HTML."""
    page = render("explanations.html", title=title, introduction=introduction, style=STYLE, rows=rows)
    write_text(path, page)


def picture(pixels: NDArray[np.uint8], description: str) -> str:
    """An image (height, width, 3) as an HTML element with a description."""
    from matplotlib.image import imsave

    file = BytesIO()
    imsave(file, pixels, format="png")
    text = escape(description)
    return f'<img src="data:image/png;base64,{b64encode(file.getvalue()).decode()}" alt="{text}" title="{text}">'
