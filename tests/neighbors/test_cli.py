"""`khot knn`, from files to files."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from khot.cli import app, main
from khot.errors import DataFileError, InvalidValueError, ModelFileError
from khot.neighbors import SubsetKNNClassifier
from tests.neighbors.problems import DIGITS, blobs

NAMES = np.array(["ant", "bee", "cat"])
FIT = ["-k", "3", "--epochs", "3", "--candidates", "30", "--batch-size", "20"]


def run(*arguments) -> None:
    app([str(argument) for argument in ["knn", *arguments]], result_action="return_value")


def write(path, lines) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)


@pytest.fixture
def table(tmp_path):
    X, y = blobs()  # noqa: N806
    lines = [[*row, name] for row, name in zip(X.tolist(), NAMES[y], strict=True)]
    write(tmp_path / "train.csv", [["a", "b", "c", "d", "animal"], *lines])
    return tmp_path


def test_from_csv_to_predictions_and_evidence(table, capsys):
    run("fit", table / "train.csv", *FIT, "-o", table / "model")
    printed = capsys.readouterr().out
    assert "read 60 rows of 4 columns (a, b, c, d) with 3 classes: ant (20), bee (20), cat (20)" in printed
    assert "epoch 3 of 3: loss" in printed
    assert "validation accuracy" in printed

    X, y = blobs(seed=1)  # noqa: N806
    write(table / "test.csv", X.tolist())  # no names, no labels
    run("predict", table / "model", table / "test.csv", "--evidence", table / "evidence.csv")
    printed = capsys.readouterr()
    header, *predictions = printed.out.split()
    assert header == "prediction"
    assert (np.array(predictions) == NAMES[y]).mean() > 0.9
    assert "accuracy" not in printed.err

    model = SubsetKNNClassifier.load(table / "model")
    distances, indices = model.kneighbors(X)
    rows = list(csv.DictReader((table / "evidence.csv").read_text().splitlines()))
    assert len(rows) == len(X) * 3
    assert [int(row["neighbor"]) for row in rows] == indices.ravel().tolist()
    assert [float(row["distance"]) for row in rows] == pytest.approx(distances.ravel().tolist())
    assert [row["label"] for row in rows] == NAMES[blobs()[1][indices.ravel()]].tolist()
    assert [(row["row"], row["rank"]) for row in rows[:4]] == [("0", "1"), ("0", "2"), ("0", "3"), ("1", "1")]


def test_ids_are_ignored_and_probabilities_written(table):
    lines = list(csv.reader((table / "train.csv").read_text().splitlines()))
    write(table / "ids.csv", [["id", *lines[0]], *([f"n{i}", *line] for i, line in enumerate(lines[1:]))])
    run("fit", table / "ids.csv", *FIT, "-o", table / "model", "--ignore", "id", "--relaxation", "neuralsort")
    shares = table / "shares.csv"
    run("predict", table / "model", table / "ids.csv", "-o", table / "out.csv", "--probabilities", shares)
    header, *rows = csv.reader(shares.read_text().splitlines())
    assert header == ["ant", "bee", "cat"]
    model = SubsetKNNClassifier.load(table / "model")
    assert np.allclose(np.array(rows, float), model.predict_proba(blobs()[0]), atol=1e-6)


def test_a_reader_that_has_seen_enough(table):
    run("fit", table / "train.csv", *FIT, "-o", table / "model")
    start = "from khot.cli import main; main()"
    command = [sys.executable, "-c", start, "knn", "predict", str(table / "model"), str(table / "train.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert "Errno" not in process.stderr.read()
    assert process.returncode == 141


def test_nothing_of_the_model_before_is_left(table, capsys):
    lines = list(csv.reader((table / "train.csv").read_text().splitlines()))
    write(table / "turned.csv", [[*line[3::-1], line[4]] for line in lines])
    run("fit", table / "turned.csv", *FIT, "-o", table / "model")
    X, y = blobs()  # noqa: N806
    np.savez(table / "train.npz", X=X, y=NAMES[y])
    run("fit", table / "train.npz", *FIT, "-o", table / "model")
    capsys.readouterr()
    run("predict", table / "model", table / "train.csv")
    assert float(capsys.readouterr().err.split()[-1]) > 0.9


def test_the_model_and_the_rows_are_not_overwritten(table):
    run("fit", table / "train.csv", *FIT, "-o", table / "model")
    (table / "link.csv").hardlink_to(table / "train.csv")
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    for option, target in (
        ("--evidence", "model/tensors.safetensors"),
        ("--out", "model/x.csv"),
        ("--out", "link.csv"),
    ):
        with pytest.raises(InvalidValueError, match=r"name another|name two files"):
            run("predict", table / "model", table / "train.csv", option, table / target)
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


def test_labels_may_be_written_with_a_point(tmp_path, capsys):
    X, y = blobs()  # noqa: N806
    np.savez(tmp_path / "train.npz", X=X, y=y)
    np.savez(tmp_path / "test.npz", X=X, y=y.astype(float))
    run("fit", tmp_path / "train.npz", *FIT, "-o", tmp_path / "model")
    capsys.readouterr()
    run("predict", tmp_path / "model", tmp_path / "test.npz")
    assert float(capsys.readouterr().err.split()[-1]) > 0.9


def test_two_outputs_need_two_files(table, capsys):
    with pytest.raises(SystemExit):
        main(["knn", "predict", "model", "rows.csv", "-o", str(table / "a.csv"), "--evidence", str(table / "a.csv")])
    assert "--evidence and --out are both" in capsys.readouterr().err


def test_the_label_column_has_a_name(table, capsys):
    lines = list(csv.reader((table / "train.csv").read_text().splitlines()))
    write(table / "first.csv", [[line[-1], *line[:-1]] for line in lines])
    run("fit", table / "train.csv", *FIT, "-o", table / "last")
    run("fit", table / "first.csv", *FIT, "-o", table / "first", "--label", "animal")
    run("predict", table / "first", table / "first.csv", "--label", "animal", "-o", table / "predictions.csv")
    last, first = (SubsetKNNClassifier.load(table / name) for name in ("last", "first"))
    assert np.array_equal(last.references_, first.references_)
    printed = capsys.readouterr()
    assert "accuracy 0.9" in printed.err or "accuracy 1.0" in printed.err
    assert (table / "predictions.csv").read_text().split() == ["prediction", *first.predict(blobs()[0])]


def test_prediction_finds_columns_and_label_by_their_names(table, capsys):
    lines = list(csv.reader((table / "train.csv").read_text().splitlines()))
    write(table / "first.csv", [[line[-1], *line[:-1]] for line in lines])
    run("fit", table / "first.csv", *FIT, "-o", table / "model", "--label", "animal")
    write(table / "mixed.csv", [[line[3], line[4], line[1], line[0], line[2]] for line in lines])
    write(table / "bare.csv", [[line[-1], *line[:-1]] for line in lines[1:]])
    for name in ("first.csv", "mixed.csv", "bare.csv"):
        capsys.readouterr()
        run("predict", table / "model", table / name)
        assert float(capsys.readouterr().err.split()[-1]) > 0.9
    for change, message in (("e", "has no column 'b'"), (None, "has a column 'more'")):
        header = ["a", "b" if change is None else change, "c", "d", *([] if change else ["more"])]
        write(table / "other.csv", [header, *([1.0] * len(header) for _ in range(3))])
        with pytest.raises(DataFileError, match=message):
            run("predict", table / "model", table / "other.csv")


def test_prediction_ignores_columns_that_the_model_does_not_know(table):
    lines = list(csv.reader((table / "train.csv").read_text().splitlines()))
    write(table / "more.csv", [[*line, "note" if i == 0 else "?"] for i, line in enumerate(lines)])
    run("fit", table / "train.csv", *FIT, "-o", table / "model")
    with pytest.raises(DataFileError, match=r"has a column 'note', .*ignore it \(--ignore\)"):
        run("predict", table / "model", table / "more.csv")
    run("predict", table / "model", table / "more.csv", "--ignore", "note", "-o", table / "more.out.csv")
    run("predict", table / "model", table / "train.csv", "-o", table / "out.csv")
    assert (table / "more.out.csv").read_text() == (table / "out.csv").read_text()
    with pytest.raises(InvalidValueError, match="--ignore must not name 'a', which the classifier was fitted with"):
        run("predict", table / "model", table / "more.csv", "--ignore", "note", "a")


def test_the_folder_is_looked_at_before_the_training(table, capsys):
    (table / "busy").mkdir()
    (table / "busy" / "x").touch()
    for out, message in ((table / "busy", "holds other things"), (table / "train.csv", "is a file")):
        with pytest.raises(ModelFileError, match=message):
            run("fit", table / "train.csv", *FIT, "-o", out)
    with pytest.raises(InvalidValueError, match="outside of --out"):
        run("fit", table / "train.csv", *FIT, "-o", table / "m", "--folder", table / "m")
    assert "validation" not in capsys.readouterr().out


def test_accuracy_compares_labels_as_they_are_written(tmp_path, capsys):
    X, y = blobs()  # noqa: N806
    write(tmp_path / "train.csv", [[*row, label] for row, label in zip(X.tolist(), y, strict=True)])
    write(tmp_path / "odd.csv", [[*row, label or "?"] for row, label in zip(X.tolist(), y, strict=True)])
    run("fit", tmp_path / "train.csv", *FIT, "-o", tmp_path / "model")
    run("predict", tmp_path / "model", tmp_path / "odd.csv")
    printed = capsys.readouterr().err.split(maxsplit=2)
    assert 0.6 < float(printed[1]) < 0.7  # a third of the labels is unknown
    assert "does not know the label '?'" in printed[2]


def test_ctrl_c_says_what_is_left(tmp_path, monkeypatch, capsys):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    np.savez(tmp_path / "train.npz", X=blobs()[0], y=blobs()[1])
    monkeypatch.setattr("khot.neighbors.estimator.train", stopped)
    again = f"train again with the folder '{tmp_path / 'run'}' and resume"
    for options, message in (([], "nothing was kept"), (["--folder", tmp_path / "run"], again)):
        arguments = ["knn", "fit", tmp_path / "train.npz", *FIT, "-o", tmp_path / "model", *options]
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        assert stop.value.code == 130
        assert message in capsys.readouterr().err


def test_images_in_npz(tmp_path, capsys):
    np.savez(tmp_path / "train.npz", X=DIGITS.train.inputs[:200], y=DIGITS.train.labels[:200])
    np.savez(tmp_path / "test.npz", X=DIGITS.test.inputs[:50], y=DIGITS.test.labels[:50])
    run("fit", tmp_path / "train.npz", *FIT, "-o", tmp_path / "model")
    run("predict", tmp_path / "model", tmp_path / "test.npz")
    accuracy = float(capsys.readouterr().err.split()[-1])
    assert accuracy > 0.7


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("1,2,x\n3,oops,y\n", "", "numbers in all columns but the label, but got 'oops' in row 2"),
        ("1,2,x\n3,y\n", "", "3 columns in its first line and 2 in line 2"),
        ("a,b\n", "", "has no rows"),
        ("a,b\n1,2\n", "--label c", "has no column 'c', but columns a, b"),
        ("1,2\n", "--label c", "no names in its first line"),
        ("1,x\n2,x\n3,x\n", "-k 1", "at least two classes"),
        ("1,x\nnan,y\n", "-k 1", "got 'nan' in row 2, column 1: fill in missing numbers"),
        ("1,x\n2,y\n", "-k 3", "n_neighbors must be at most the number of reference rows"),
    ],
)
def test_mistakes_end_in_one_line(content, arguments, message, tmp_path, capsys):
    (tmp_path / "train.csv").write_text(content)
    with pytest.raises(SystemExit) as stop:
        main(["knn", "fit", str(tmp_path / "train.csv"), "-o", str(tmp_path / "model"), *arguments.split()])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("khot: ")
    assert message in error
    assert error.count("\n") == 1


def test_files_that_are_no_archives(tmp_path, capsys):
    (tmp_path / "bad.npz").write_text("text")
    np.savez(tmp_path / "other.npz", Z=np.zeros(3))
    np.savez(tmp_path / "unlabelled.npz", X=np.zeros((3, 2)))
    for name, message in [("bad", "is no NPZ file"), ("other", "but not X"), ("unlabelled", "no array y")]:
        with pytest.raises(SystemExit):
            main(["knn", "fit", str(tmp_path / f"{name}.npz"), "-o", str(tmp_path / "model")])
        assert message in capsys.readouterr().err
