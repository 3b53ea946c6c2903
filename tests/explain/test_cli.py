"""`khot explain`, from files to files."""

import csv
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from khot.cli import app, main
from khot.errors import BlackBoxError, DataFileError
from khot.explain import SubsetExplainer
from tests.explain.problems import TEXTS, X, from_last_column, from_words

QUICK = "--temperature 0.5 --epochs 6 --batch-size 50"
MODEL = """
import numpy as np

def of_texts(texts):
    good = np.array([("great" in t) + ("fine" in t) - ("dull" in t) - ("poor" in t) for t in texts])
    p = 1 / (1 + np.exp(-3.0 * good))
    return np.stack([1 - p, p], 1)

def warns(texts):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("no names of columns")
    return of_texts(texts)

def of_numbers(rows):
    p = 1 / (1 + np.exp(-6 * rows[:, 4]))
    return np.stack([1 - p, p], 1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "judge.py").write_text(MODEL)
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "needy.py").write_text("import no_such_package")
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
    printed = capsys.readouterr().err
    assert "the model predicts the same class from the chosen items alone in" in printed
    page = (folder / "why.html").read_text()
    records = list(csv.DictReader((folder / "why.csv").read_text().splitlines()))
    assert page.count("<mark ") == len(records)
    assert len(json.loads((folder / "why.json").read_text())) == len(TEXTS)
    (folder / "few.csv").write_text("review\nplot great scene\n")
    run("apply why few.csv")
    assert "[great]" in capsys.readouterr().out


def test_sentences_of_a_length(folder: Path):
    options = "--temperature 0.5 --epochs 1 --batch-size 200"
    (folder / "two.csv").write_text("id,review\n" + "".join(f"{i},It was {w}. Or not?\n" for i, w in enumerate(TEXTS)))
    line = (
        "fit two.csv --text review --ignore id --items sentences --length 7 --sentences 3 --model judge:of_texts -k 1"
    )
    run(f"{line} -o why {options} --random-choices 2 --folder runs")
    assert len(list((folder / "runs").glob("answers-*"))) == 3
    fields = json.loads((folder / "why" / "explainer.json").read_text())["masker"]["fields"]
    assert (fields["length"], fields["sentences"]) == (7, 3)


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
def test_what_fit_stores_must_be_texts(folder: Path, capsys: pytest.CaptureFixture, change: dict):
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
    (folder / "few.csv").write_text("e,b,a,c,d\n3,0,0,0,0\n")
    run("apply why few.csv")
    assert "[e = 3]" in capsys.readouterr().out
    (folder / "few.csv").write_text("key,e,b,a,c,d\nK-1,3,0,0,0,0\nK-2,0,0,0,0,0\n")
    run("apply why few.csv --id key --csv out.csv")
    records = list(csv.DictReader((folder / "out.csv").read_text().splitlines()))
    assert [record["row"] for record in records] == ["K-1", "K-2"]
    for names, message in (("b,a,c,d", "no column 'e'"), ("a,b,c,d,e,id2", "has a column 'id2'")):
        (folder / "few.csv").write_text(f"{names}\n" + ",".join("0" for _ in names.split(",")) + "\n")
        with pytest.raises(SystemExit):
            main(["explain", "apply", "why", "few.csv"])
        assert message in capsys.readouterr().err


def test_columns_that_an_explainer_of_numbers_does_not_know(folder: Path):
    run(f"fit numbers.csv --ignore id y --model judge:of_numbers -k 1 -o why {QUICK}")
    (folder / "few.csv").write_text("a,b,c,d,e,city\n0,0,0,0,3,Ulm\n")
    with pytest.raises(DataFileError, match=r"has a column 'city', .*: remove it from the file, or ignore it"):
        run("apply why few.csv")
    run("apply why few.csv --ignore city")
    (folder / "few.csv").write_text("a,b,c,d,e\n0,0,0,0,Ulm\n")
    with pytest.raises(DataFileError, match=r"leave out such columns \(--ignore\), or encode them as numbers$"):
        run("apply why few.csv")


def test_names_that_are_numbers(folder: Path, capsys: pytest.CaptureFixture):
    lines = "".join(",".join(map(str, row)) + "\n" for row in X[:50].round(3))
    (folder / "years.csv").write_text(f"2018,2019,2020,2021,2022\n{lines}")
    run(f"fit years.csv --header --model judge:of_numbers -k 1 -o why {QUICK}")
    assert "years.csv has 50 rows" in capsys.readouterr().out
    run("apply why years.csv --csv out.csv")
    records = list(csv.DictReader((folder / "out.csv").read_text().splitlines()))
    assert len(records) == 50
    assert all(record["text"].startswith("20") for record in records)


def test_a_model_that_exits(folder: Path, capsys: pytest.CaptureFixture):
    (folder / "quits.py").write_text("def of_texts(texts):\n    raise SystemExit(0)\n")
    with pytest.raises(SystemExit) as stop:
        main(f"explain fit reviews.csv --text review --model quits:of_texts -k 1 -o why {QUICK}".split())
    assert stop.value.code == 2
    assert "khot: --model quits:of_texts raised SystemExit" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["fit", "apply"])
def test_a_model_that_raises_is_called_as_on_the_command_line(folder: Path, command: str):
    (folder / "raises.py").write_text("def of_texts(texts):\n    raise ValueError('no words')\n")
    run(f"fit reviews.csv --text review --model judge:of_texts -k 1 -o why {QUICK}")
    options = f"--text review -k 1 -o new {QUICK}" if command == "fit" else "--text review"
    rows = "reviews.csv" if command == "fit" else "why reviews.csv"
    with pytest.raises(
        BlackBoxError, match=r"^--model raises:of_texts raised ValueError .*: no words: call it"
    ) as caught:
        run(f"{command} {rows} --model raises:of_texts {options}")
    assert isinstance(caught.value.__cause__.__cause__, ValueError)


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
    assert "words was not written by khot explain fit: name the model (--model)" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["parquet", "npy", "npz"])
def test_other_files_of_numbers(kind: str, folder: Path):
    if kind == "parquet":
        columns = {"id": [f"c{i}" for i in range(len(X))], **dict(zip("abcde", X.T, strict=True))}
        parquet.write_table(pyarrow.table(columns), "rows.parquet")
    else:
        np.save("rows.npy", X) if kind == "npy" else np.savez("rows.npz", X=X)
    named = " --ignore id" if kind == "parquet" else ""
    run(f"fit rows.{kind}{named} --model judge:of_numbers -k 1 -o why {QUICK}")
    run(f"apply why rows.{kind} --csv why.csv")
    records = list(csv.DictReader((folder / "why.csv").read_text().splitlines()))
    assert len(records) == len(X)
    assert sum(record["item"] == "4" for record in records) > 0.9 * len(X)
    if kind == "parquet":
        run("apply why rows.parquet --id id --csv why.csv")
        assert (folder / "why.csv").read_text().splitlines()[1].startswith("c0,1,4,e = ")


def test_columns_to_ignore_add_to_those_of_fit(folder: Path):
    run(f"fit numbers.csv --ignore id y --model judge:of_numbers -k 1 -o why {QUICK}")
    lines = (folder / "numbers.csv").read_text().splitlines()
    (folder / "more.csv").write_text("\n".join(f"{line},{'z' if i == 0 else 7}" for i, line in enumerate(lines)))
    run("apply why more.csv --ignore z --csv more.csv.csv")
    run("apply why numbers.csv --csv plain.csv")
    run("apply why numbers.csv --id a --csv named.csv")  # which is for the model, too
    plain = [line.split(",")[1:] for line in (folder / "plain.csv").read_text().splitlines()]
    for name in ("more.csv.csv", "named.csv"):
        assert [line.split(",")[1:] for line in (folder / name).read_text().splitlines()] == plain


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit reviews.csv --text review --model judge -k 2 -o why", "must be module:function"),
        ("fit reviews.csv --text review --model nobody:of_texts -k 2 -o why", "run khot in the folder of nobody.py"),
        (
            "fit reviews.csv --text review --model needy:of_texts -k 2 -o why",
            "import needy to see why",
        ),
        ("fit reviews.csv --text review --model judge:__name__ -k 2 -o why", "must be a function, but is a str"),
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
        ("fit reviews.csv --text review --sentences 2 --model judge:of_texts -k 2 -o why", "pass --items sentences"),
        ("fit numbers.csv --sentences 2 --model judge:of_numbers -k 2 -o why", "--sentences is for texts"),
        ("fit reviews.csv --text review --length 1000000000000 --model judge:of_texts -k 2 -o why", "at most 100000"),
        ("fit reviews.csv --text= --model judge:of_texts -k 2 -o why", "no column ''"),
        (
            "fit reviews.csv --text review --model judge:of_texts -k 2 -o why --folder ./why",
            "--folder must be a folder outside",
        ),
        (
            "fit reviews.csv --text review --model judge:of_texts -k 2 -o why --folder why/run",
            "--folder must be a folder outside",
        ),
        ("apply why reviews.csv --html a --csv ./a", "--csv and --html are both a: name two files"),
        ("apply why reviews.csv --json reviews.csv", "--json and the file of the rows are both reviews.csv"),
        ("apply why reviews.csv --json nowhere/a.json", "--json must be a file that can be written, but got nowhere"),
        ("apply why reviews.csv --html .", "--html must be a file that can be written, but got ."),
        ("fit reviews.csv --text words --model judge:of_texts -k 2 -o why", "no column 'words'"),
        ("fit reviews.csv --model judge:of_texts -k 2 -o why", "or name the column of texts (--text)"),
        ("fit reviews.csv --text review --model judge:of_texts -k 2 -o judge.py", "is a file"),
        ("apply nowhere reviews.csv", "not the folder of an explainer"),
        ("fit reviews.csv --text review --model judge.py:of_texts -k 2 -o why", "name it judge:of_texts"),
        (
            "fit nowhere.csv --text review --model judge:of_texts -k 2 -o why",
            "nowhere.csv does not exist: check the path",
        ),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture, line: str, message: str):
    with pytest.raises(SystemExit):
        main(["explain", *line.split()])
    assert message in capsys.readouterr().err


def test_words_for_the_class(folder: Path, capsys: pytest.CaptureFixture):
    run(f"fit reviews.csv --text review --length 30 --model judge:of_texts -k 1 --for-class -o why {QUICK}")
    run("apply why reviews.csv --json why.json")
    assert "in 100.0% of the rows" in capsys.readouterr().err
    saved = json.loads((folder / "why" / "explainer.json").read_text())
    assert (saved["for_class"], saved["seen_"]) == (True, [0, 1])


def test_a_model_that_changes_the_folder(folder: Path):
    (folder / "other").mkdir()
    (folder / "moves.py").write_text("import os; os.chdir('other')\nfrom judge import of_texts")
    run(f"fit reviews.csv --text review --length 30 --model judge:of_texts -k 2 -o why {QUICK}")
    sys.modules.pop("moves", None)
    run("apply why reviews.csv --model moves:of_texts --html why.html --json why.json --csv why.csv")
    assert all((folder / f"why.{kind}").is_file() for kind in ("html", "json", "csv"))
    assert not list((folder / "other").iterdir())


def test_a_column_that_is_needed_is_not_ignored(folder: Path, capsys: pytest.CaptureFixture):
    run(f"fit numbers.csv --ignore id y --model judge:of_numbers -k 2 -o why {QUICK}")
    with pytest.raises(SystemExit):
        main(["explain", "apply", "why", "numbers.csv", "--ignore", "a"])
    assert "--ignore must not name 'a', which the explainer was fitted with" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_warnings_of_a_model_are_told_once(folder: Path, capsys: pytest.CaptureFixture, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    line = f"explain fit reviews.csv --text review --length 30 --model judge:warns -k 2 -o why {QUICK}"
    with pytest.raises(SystemExit):
        main(line.split())
    assert capsys.readouterr().err.count("khot: warning: no names of columns") == 1
