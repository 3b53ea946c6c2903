import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest

from khot._report.page import Section, write_page
from khot.cli import app
from khot.experiments import embed, knn, known_answers


def test_the_demo_writes_a_page_that_needs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    short = replace(knn.PLANS["quick", "digits"], width=4, stages=(knn.Stage(2, 8),), search_epochs=1, samples=1)
    monkeypatch.setitem(knn.PLANS, ("quick", "digits"), short)
    monkeypatch.setattr(knn, "TEMPERATURES", (1.0,))
    monkeypatch.setitem(embed.PLANS, ("quick", "digits"), replace(embed.PLANS["quick", "digits"], epochs=1))
    tiny = dict.fromkeys(known_answers.PROBLEMS, known_answers.Size(200, 50, 1))
    monkeypatch.setitem(known_answers.SIZES, "quick", tiny)
    app(["demo", "--out", str(tmp_path / "demo")], result_action="return_value")
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    assert f"wrote {tmp_path / 'demo' / 'index.html'}" in capsys.readouterr().out
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 4
    assert "nonlinear additive" in page
    assert all(base64.b64decode(s.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG") for s in sources)
    assert "://" not in page


def test_text_is_not_taken_for_html(tmp_path: Path):
    write_page(tmp_path / "page.html", "<b>", "a & b", [Section("<i>", "1 < 2", table="x > y")])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(safe in page for safe in ("&lt;b&gt;", "a &amp; b", "&lt;i&gt;", "1 &lt; 2", "x &gt; y"))
