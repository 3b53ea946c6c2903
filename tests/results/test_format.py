"""Files of results read on a screen: each is in the one format that khot writes."""

import json
from pathlib import Path

import pytest

from benchmarks.tables.cells import ROOT
from khot._files import readable_json

FILES = sorted([*(ROOT / "results").glob("*.json"), *(ROOT / "benchmarks" / "results").glob("*.json")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_results_are_readable(path: Path):
    text = path.read_text(encoding="utf-8")
    assert readable_json(json.loads(text), allow_nan=True) == text
    assert text.count("\n") < 300
