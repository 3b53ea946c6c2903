"""HTML pages of explained rows."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Protocol

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


class Marked(Protocol):
    """A row of texts of which some are chosen, with a model's probabilities for all of them and for the chosen ones."""

    @property
    def items(self) -> list[str]: ...
    @property
    def chosen(self) -> list[int]: ...
    @property
    def full(self) -> list[float]: ...
    @property
    def masked(self) -> list[float]: ...


def write_columns(
    path: Path,
    title: str,
    columns: Sequence[tuple[str, Sequence[Marked]]],
    classes: Sequence[str],
    introduction: str = "",
) -> None:
    """Write a page with the same rows explained in different ways, one column for each way (heading, rows)."""
    width = 100 / len(columns)
    headings = "".join(f'<th style="width: {width:g}%">{escape(heading)}</th>' for heading, _ in columns)
    rows = zip(*([f"<td>{_marked(row, classes)}</td>" for row in rows] for _, rows in columns), strict=True)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    write_explanations(path, title, [f'<table class="khot"><tr>{headings}</tr>{body}</table>'], introduction)


def _marked(row: Marked, classes: Sequence[str]) -> str:
    label = max(range(len(row.full)), key=lambda i: row.full[i])
    says = f"{escape(classes[label])}: {row.full[label]:.2f} on the whole, {row.masked[label]:.2f} on the chosen"
    items = (f"<mark>{escape(x)}</mark>" if i in row.chosen else escape(x) for i, x in enumerate(row.items))
    return f'<p class="says">{says}</p><p>{" ".join(items)}</p>'


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
