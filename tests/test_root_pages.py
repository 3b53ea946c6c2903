"""The pages at the root: their links and paths lead somewhere, and the README stays short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks" / "README.md"]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PATH = re.compile(r"`((?:src|tests|docs|benchmarks|results|\.github)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page: Path):
    text = page.read_text(encoding="utf-8")
    places = [page.parent / link for link in LINK.findall(text)] + [ROOT / path for path in PATH.findall(text)]
    assert [str(place) for place in places if not place.exists()] == []


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180
