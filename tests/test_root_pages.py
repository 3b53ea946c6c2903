"""The pages at the root: their links and paths lead somewhere, and the README stays short."""

import re
import tomllib
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


def test_architecture_lists_the_layers_in_their_order():
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Packages, in order")[1].split("##")[0]
    listed = [
        re.findall(r"`(\w+)(?:\.py)?`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")
    ]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]
    layers = [layer.split(" | ") for layer in reversed(contract["layers"])]
    place = {name: i for i, layer in enumerate(layers) for name in layer}
    assert sorted(name for names in listed for name in names) == sorted(place)
    order = [place[name] for names in listed for name in names]
    assert order == sorted(order)
