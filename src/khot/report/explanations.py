"""Pages of explained rows."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

STYLE = (
    ".khot { border-top: 1px solid #ddd; padding: .6rem 0; overflow-wrap: anywhere; } "
    ".khot mark { background: #ffe08a; border-radius: 3px; padding: 0 .15em; } "
    ".khot .says { color: #555; font-size: .85rem; margin: .2rem 0; }"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }}
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{rows}
</body>
</html>
"""


def write_explanations(path: Path, title: str, rows: Sequence[str]) -> None:
    """Write a page of rows that are HTML already."""
    path.write_text(_PAGE.format(title=escape(title), style=STYLE, rows="\n".join(rows)), encoding="utf-8")
