"""`khot explain`, from files to files."""

import csv
import json
import sys
from pathlib import Path

import pytest

from khot.cli import app, main
from khot.explain import SubsetExplainer
from tests.explain.test_explainer import TEXTS, X, from_last_column, from_words

QUICK = "--temperature 0.5 --epochs 6 --batch-size 50"
MODEL = """
import numpy as np

def of_texts(texts):
    good = np.array([("great" in t) + ("fine" in t) - ("dull" in t) - ("poor" in t) for t in texts])
    p = 1 / (1 + np.exp(-3.0 * good))
    return np.stack([1 - p, p], 1)

def of_numbers(rows):
    p = 1 / (1 + np.exp(-6 * rows[:, 4]))
    return np.stack([1 - p, p], 1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "judge.py").write_text(MODEL)
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "leaves.py").write_text("raise SystemExit('bye\\nnow')")
    with (tmp_path / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "review"], *([i, text] for i, text in enumerate(TEXTS))])
    with (tmp_path / "numbers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", *"abcde", "y"], *([f"c{i}", *row, 1] for i, row in enumerate(X.tolist()))])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    return tmp_path


def run(line: str) -> None:
    app(["explain", *line.split()], result_action="return_value")


def test_texts(folder: Path, capsys: pytest.CaptureFixture):
    run(f"fit reviews.csv --text review --length 30 --model judge:of_texts -k 2 -o why {QUICK}")
    assert "wrote why" in capsys.readouterr().out
    run("apply why reviews.csv --html why.html --json why.json --csv why.csv")
    told = capsys.readouterr().err
    assert "the model says the same about the chosen items alone in" in told
    page = (folder / "why.html").read_text()
    records = list(csv.DictReader((folder / "why.csv").read_text().splitlines()))
    assert page.count("<mark ") == len(records)
    assert len(json.loads((folder / "why.json").read_text())) == len(TEXTS)
    (folder / "few.csv").write_text("review\nplot great scene\n")
    run("apply why few.csv")
    assert "[great]" in capsys.readouterr().out


def test_sentences_of_a_length(folder: Path):
    options = "--temperature 0.5 --epochs 1 --batch-size 200"
    run(f"fit reviews.csv --text review --items sentences --length 7 --model judge:of_texts -k 1 -o why {options}")
    assert json.loads((folder / "why" / "explainer.json").read_text())["masker"]["fields"]["length"] == 7


@pytest.mark.parametrize(
    "change",
    [
        {"model": 1},
        {"text": ["review"]},
        {"ignore": 2.5},
        {"ignore": [1]},
        {"text": 0},
    ],
)
def test_what_fit_remembers_must_be_texts(folder: Path, capsys: pytest.CaptureFixture, change: dict):
    (folder / "why").mkdir()
    about = {"model": "judge:of_texts", "text": "review", "ignore": []}
    (folder / "why" / "black_box.json").write_text(json.dumps(about | change))
    with pytest.raises(SystemExit):
        main(["explain", "apply", "why", "reviews.csv"])
    assert "black_box.json is damaged" in capsys.readouterr().err


def test_numbers(folder: Path, capsys: pytest.CaptureFixture):
    run(f"fit numbers.csv --ignore id y --classes no yes --model judge:of_numbers -k 1 -o why {QUICK}")
    (folder / "few.csv").write_text("a,b,c,d,e\n0,0,0,0,3\n")
    run("apply why few.csv")
    printed = capsys.readouterr().out
    assert "[e = 3]" in printed
    assert "row 0, yes: 1.000 on the whole" in printed
    (folder / "few.csv").write_text("b,a,c,d,e\n0,0,0,0,3\n")
    with pytest.raises(SystemExit):
        main(["explain", "apply", "why", "few.csv"])
    assert "give it the same, in the same order" in capsys.readouterr().err


def test_an_explainer_that_was_saved_from_python(folder: Path, capsys: pytest.CaptureFixture):
    SubsetExplainer(1, temperature=0.5, epochs=1).fit(from_last_column, X).save("columns")
    SubsetExplainer(1, masker="words", temperature=0.5, epochs=1).fit(from_words, TEXTS).save("words")
    run("apply columns numbers.csv --ignore id y --model judge:of_numbers --csv columns.csv")
    run("apply words reviews.csv --text review --model judge:of_texts --csv words.csv")
    for name, rows in (("columns", X), ("words", TEXTS)):
        records = list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
        expected = SubsetExplainer.load(name).explain(rows).to_records()
        assert [(row["row"], row["text"]) for row in records] == [(str(row["row"]), row["text"]) for row in expected]
    with pytest.raises(SystemExit):
        main(["explain", "apply", "words", "reviews.csv", "--text", "review"])
    assert "--model must be module:function" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit reviews.csv --text review --model judge -k 2 -o why", "must be module:function"),
        ("fit reviews.csv --text review --model nobody:of_texts -k 2 -o why", "cannot be found"),
        ("fit reviews.csv --text review --model judge:nothing -k 2 -o why", "cannot be found"),
        ("fit reviews.csv --text review --model broken:of_texts -k 2 -o why", "(ZeroDivisionError: division by zero)"),
        (
            "fit reviews.csv --text review --model leaves:of_texts -k 2 -o why",
            "cannot be imported (SystemExit: bye now)",
        ),
        ("fit reviews.csv --text review --length 0 --model judge:of_texts -k 2 -o why", "length must be at least 1"),
        (
            "fit reviews.csv --text review --items sentences --length 0 --model judge:of_texts -k 2 -o why",
            "length must be at least 1",
        ),
        ("fit numbers.csv --ignore y --length 9 --model judge:of_numbers -k 2 -o why", "--length is for texts"),
        ("fit numbers.csv --ignore z --model judge:of_numbers -k 2 -o why", "no column 'z'"),
        ("fit reviews.csv --ignore id --text review --model judge:of_texts -k 2 -o why", "--ignore is for tables"),
        ("fit reviews.csv --text= --model judge:of_texts -k 2 -o why", "no column ''"),
        (
            "fit reviews.csv --text review --model judge:of_texts -k 2 -o why --run ./why",
            "--run must be a folder outside",
        ),
        (
            "fit reviews.csv --text review --model judge:of_texts -k 2 -o why --run why/run",
            "--run must be a folder outside",
        ),
        ("apply why reviews.csv --html a --csv ./a", "--csv and --html are both a: name two files"),
        ("apply why reviews.csv --json reviews.csv", "--json and the file of the rows are both reviews.csv"),
        ("apply why reviews.csv --json nowhere/a.json", "--json must be a file that can be written, but got nowhere"),
        ("apply why reviews.csv --html .", "--html must be a file that can be written, but got ."),
        ("fit reviews.csv --text words --model judge:of_texts -k 2 -o why", "no column 'words'"),
        ("fit reviews.csv --model judge:of_texts -k 2 -o why", "or name the column of texts (--text)"),
        ("fit reviews.csv --text review --model judge:of_texts -k 2 -o judge.py", "is a file"),
        ("apply nowhere reviews.csv", "not the folder of an explainer"),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture, line: str, message: str):
    with pytest.raises(SystemExit):
        main(["explain", *line.split()])
    assert message in capsys.readouterr().err
