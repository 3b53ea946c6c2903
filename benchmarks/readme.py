"""Draw the pictures of the README, and put the numbers of the files of results into it: `make readme`.

Each block between `<!-- begin: NAME -->` and `<!-- end: NAME -->` is replaced by what BLOCKS has under that name.
"""

import re
from collections.abc import Callable

from benchmarks.tables import measured, summary
from benchmarks.tables.cells import ROOT

README = ROOT / "README.md"
BLOCKS: dict[str, Callable[[], str]] = {"results": summary, "speed": measured.speed_in_short}
_BLOCK = re.compile(r"<!-- begin: (\w+) -->\n.*?<!-- end: \1 -->", re.DOTALL)


def filled(text: str) -> str:
    """The text with every block replaced."""
    return _BLOCK.sub(lambda found: f"<!-- begin: {found[1]} -->\n{BLOCKS[found[1]]()}\n<!-- end: {found[1]} -->", text)


if __name__ == "__main__":
    from benchmarks import pictures  # loads torch and matplotlib, which the numbers do without

    pictures.draw()
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
