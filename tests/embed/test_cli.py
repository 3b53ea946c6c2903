"""`khot embed`, from files to files."""

import csv

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from khot.cli import app, main
from khot.embed import ParametricTSNE, load
from tests.embed.problems import clouds

FIT = ["--epochs", "2", "--batch-size", "30", "--perplexity", "5", "--no-pretrain"]
NAMES = np.array(["ant", "bee", "cat"])
COLUMNS = ["a", "b", "c", "d", "e"]


def run(*arguments) -> None:
    app([str(argument) for argument in ["embed", *arguments]], result_action="return_value")


def write(path, rows, labels=None) -> None:
    """Write a file of the kind of its suffix, with a column of labels `animal`, or an array y."""
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".npz":
        np.savez(path, X=rows, **({} if labels is None else {"y": labels}))
    elif path.suffix == ".parquet":
        columns = dict(zip(COLUMNS, rows.T, strict=True)) | ({} if labels is None else {"animal": labels})
        parquet.write_table(pyarrow.table(columns), path)
    else:
        lines = (
            rows.tolist() if labels is None else [[*row, name] for row, name in zip(rows.tolist(), labels, strict=True)]
        )
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS + ["animal"] * (labels is not None), *lines])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "parquet"])
def test_from_a_file_to_points_and_a_map(kind, tmp_path, capsys):
    rows, labels = clouds()
    write(tmp_path / f"rows.{kind}", rows)
    np.save(tmp_path / "labels.npy", NAMES[labels])
    run("fit", tmp_path / f"rows.{kind}", "--labels", tmp_path / "labels.npy", *FIT, "-d", 2, "-o", tmp_path / "map")
    assert "epoch 2 of 2: loss" in capsys.readouterr().out
    names = ["embedding.json", "map.html", "map.png", "points.npy", "table.json", "tensors.safetensors"]
    assert sorted(path.name for path in (tmp_path / "map").iterdir()) == names
    page = (tmp_path / "map" / "map.html").read_text()
    assert '["ant", "bee", "cat"]' in page
    assert f"rows.{kind}: 90 rows" in page

    others, _ = clouds(20, seed=1)
    write(tmp_path / f"new.{kind}", others)
    run("transform", tmp_path / "map", tmp_path / f"new.{kind}", "-o", tmp_path / "z.npy")
    run("transform", tmp_path / "map", tmp_path / f"new.{kind}", "-o", tmp_path / "z.csv")
    model = load(tmp_path / "map")
    assert np.allclose(np.load(tmp_path / "map" / "points.npy"), model.transform(rows), atol=1e-6)
    assert np.allclose(np.load(tmp_path / "z.npy"), model.transform(others), atol=1e-6)
    header, *lines = csv.reader((tmp_path / "z.csv").read_text().splitlines())
    assert header == ["subsetsne0", "subsetsne1"]
    assert np.allclose(np.array(lines, dtype=float), np.load(tmp_path / "z.npy"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_with_names(kind, tmp_path, capsys):
    rows, _ = clouds()
    names = [f"row-{i}" for i in range(len(rows))]
    write(tmp_path / f"rows.{kind}", rows, names)
    file = tmp_path / f"rows.{kind}"
    run("fit", file, "--id", "animal", *FIT, "-o", tmp_path / "map")
    assert '"row-89"' in (tmp_path / "map" / "map.html").read_text()
    run("transform", tmp_path / "map", file, "--id", "animal", "-o", tmp_path / "z.csv")
    header, *lines = csv.reader((tmp_path / "z.csv").read_text().splitlines())
    assert header == ["animal", "subsetsne0", "subsetsne1"]
    assert [line[0] for line in lines] == names
    points = np.load(tmp_path / "map" / "points.npy")
    assert np.allclose(np.array([line[1:] for line in lines], dtype=float), points, atol=1e-6)
    run("transform", tmp_path / "map", file, "-o", tmp_path / "z.npy")  # which knows that the column is not for it
    assert np.allclose(np.load(tmp_path / "z.npy"), points, atol=1e-6)

    run("fit", file, "--id", "animal", "--labels", "animal", *FIT, "-o", tmp_path / "map")
    assert '"row-89"' in (tmp_path / "map" / "map.html").read_text()
    capsys.readouterr()
    for arguments, message in [
        (["transform", tmp_path / "map", file, "--id", "animal", "-o", tmp_path / "y.npy"], "must end in .csv"),
        (["transform", tmp_path / "map", file, "--id", "plant", "-o", tmp_path / "y.csv"], "has no column 'plant'"),
        (["fit", tmp_path / "z.npy", "--id", "animal", "-o", tmp_path / "other"], "has no columns with names"),
    ]:
        with pytest.raises(SystemExit):
            main(["embed", *map(str, arguments)])
        assert message in capsys.readouterr().err
    assert not (tmp_path / "y.csv").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_labels_in_the_same_file(kind, tmp_path):
    rows, labels = clouds()
    write(tmp_path / f"rows.{kind}", rows, NAMES[labels])
    column = [] if kind == "npz" else ["--labels", "animal"]
    run("fit", tmp_path / f"rows.{kind}", *column, *FIT, "-o", tmp_path / "map")
    run("fit", tmp_path / f"rows.{kind}", *column, *FIT, "-o", tmp_path / "map")  # a second time, over the first
    assert '["ant", "bee", "cat"]' in (tmp_path / "map" / "map.html").read_text()
    run("transform", tmp_path / "map", tmp_path / f"rows.{kind}", *column, "-o", tmp_path / "z.npy")
    assert np.array_equal(np.load(tmp_path / "z.npy"), np.load(tmp_path / "map" / "points.npy"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_go_by_their_names(kind, tmp_path, capsys):
    rows, labels = clouds()
    columns = {"number": np.arange(90), **{f"x{i}": rows[:, i] for i in range(5)}, "animal": NAMES[labels]}

    def put(name: str, names: list[str]) -> str:
        path = tmp_path / f"{name}.{kind}"
        if kind == "parquet":
            parquet.write_table(pyarrow.table({name: columns[name] for name in names}), path)
        else:
            cells = zip(*(columns[name].tolist() for name in names), strict=True)
            path.write_text("\n".join(",".join(map(str, line)) for line in [names, *cells]))
        return str(path)

    some = [f"x{i}" for i in range(5)]
    given = put("rows", ["number", *some, "animal"])
    run("fit", given, "--labels", "animal", "--ignore", "number", *FIT, "-o", tmp_path / "map")
    expected = np.load(tmp_path / "map" / "points.npy")
    for names in (["number", *some, "animal"], some[::-1], ["animal", *some], [*some, "number"]):
        run("transform", tmp_path / "map", put("new", names), "-o", tmp_path / "z.npy")
        assert np.array_equal(np.load(tmp_path / "z.npy"), expected)
    assert load(tmp_path / "map").feature_names_in_.tolist() == some
    columns["number2"] = columns["number"]
    new = put("more", [*some, "number2"])
    run("transform", tmp_path / "map", new, "--ignore", "number2", "-o", tmp_path / "z.npy")
    assert np.array_equal(np.load(tmp_path / "z.npy"), expected)
    for names, message in ((some[1:], "has no column 'x0'"), ([*some, "number2"], "has a column 'number2'")):
        with pytest.raises(SystemExit):
            main(["embed", "transform", str(tmp_path / "map"), put("bad", names), "-o", str(tmp_path / "bad.npy")])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["embed", "fit", given, "--labels", "animal", "--ignore", "nobody", "-o", str(tmp_path / "no")])
    assert "has no column 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "headless", "npz", "parquet"])
def test_labels_in_a_file_of_their_own(kind, tmp_path):
    rows, labels = clouds()
    np.save(tmp_path / "rows.npy", rows)
    path = tmp_path / f"labels.{'csv' if kind == 'headless' else kind}"
    if kind == "npz":
        np.savez(path, y=NAMES[labels])
    elif kind == "parquet":
        parquet.write_table(pyarrow.table({"animal": NAMES[labels]}), path)
    else:
        path.write_text("\n".join([*(["animal"] if kind == "csv" else []), *NAMES[labels]]))
    run("fit", tmp_path / "rows.npy", "--labels", path, *FIT, "-o", tmp_path / "map")
    assert '["ant", "bee", "cat"]' in (tmp_path / "map" / "map.html").read_text()


def test_other_dimensions_and_methods(tmp_path, capsys):
    write(tmp_path / "rows.csv", clouds()[0])
    run("fit", tmp_path / "rows.csv", *FIT, "--scale", "columns", "--mutual", "-o", tmp_path / "map")
    assert (load(tmp_path / "map").scale, load(tmp_path / "map").mutual) == ("columns", True)
    assert "map.png" in capsys.readouterr().out
    run(
        "fit", tmp_path / "rows.csv", *FIT, "-d", 3, "--method", "tsne", "--input-components", 2, "-o", tmp_path / "map"
    )
    assert "map.png" not in capsys.readouterr().out
    assert not (tmp_path / "map" / "map.png").exists()
    assert np.load(tmp_path / "map" / "points.npy").shape == (90, 3)
    assert isinstance(load(tmp_path / "map"), ParametricTSNE)


def test_training_goes_on(tmp_path, capsys):
    write(tmp_path / "rows.npy", clouds()[0])
    for more in ([], ["--resume"]):
        run("fit", tmp_path / "rows.npy", *FIT, "--folder", tmp_path / "run", *more, "-o", tmp_path / "map")
        assert ("epoch 1" in capsys.readouterr().out) == (not more)


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("x.csv", "1,2\n3,oops\n", "", "but got 'oops' in row 2"),
        ("x.csv", "1,2\n3\n", "", "2 columns in its first line and 1 in line 2"),
        ("x.csv", "1,2\nnan,4\n5,6\n", "", "got 'nan' in row 2, column 1: fill in missing"),
        ("x.csv", "1,2\n3,4\n5,6\n", "", "perplexity must lie between 1 and 2"),
        ("x.csv", "1,2\n3,4\n5,6\n", "--method tsne --mutual", "--mutual is only for the method subset"),
        ("x.csv", "a,b\n1,2\n3,4\n", "--labels c", "has no column 'c', but columns a, b"),
        ("x.csv", "a;b\n1;2\n3;4\n", "--labels b", "one column, a;b: separate the columns by commas"),
        ("x.csv", "1,2\n3,4\n5,6\n", "--batch-size 0", "batch_size must be at least 1, but got 0"),
        ("x.csv", "1;2\n3;4\n5;6\n", "", "separate the columns by commas"),
        ("x.csv", 'a,b\n1,"2,5"\n3,4\n', "", "got '2,5' in row 1 below the names, column 'b': write decimals with"),
        ("x.npy", "text", "", "cannot be read as NPY"),
        ("x.npz", "text", "", "is no NPZ file"),
        ("x.parquet", "text", "", "cannot be read as Parquet"),
        ("x.csv", None, "", "x.csv does not exist: check the path"),
    ],
)
def test_mistakes_end_in_one_line(name, content, arguments, message, tmp_path, capsys):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit) as stop:
        main(["embed", "fit", str(tmp_path / name), "-o", str(tmp_path / "map"), *arguments.split()])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("khot: ")
    assert message in error
    assert error.count("\n") == 1


def test_mistakes_about_labels_and_outputs(tmp_path, capsys):
    rows, labels = clouds()
    write(tmp_path / "rows.npy", rows)
    write(tmp_path / "words.parquet", rows, NAMES[labels])
    np.save(tmp_path / "few.npy", labels[:10])
    np.save(tmp_path / "one.npy", 1.0)
    np.save(tmp_path / "images.npy", rows[..., None])
    (tmp_path / "gap.csv").write_text("label\n" + "a\n" * 89 + "\n")
    write(tmp_path / "few.npz", rows, labels[:10])
    run("fit", tmp_path / "rows.npy", *FIT, "-o", tmp_path / "map")
    for arguments, message in [
        (["fit", "rows.npy", "--labels", "few.npy", "-o", "new"], "one label for each of 90 rows, but has shape (10,)"),
        (["fit", "rows.npy", "--labels", "animal", "-o", "new"], "there is no file animal"),
        (["fit", "few.npz", "-o", "new"], "one label for each of 90 rows, but has shape (10,)"),
        (["fit", "one.npy", "-o", "new"], "it holds a single number"),
        (["fit", "images.npy", "-o", "new"], "but got shape (90, 5, 1): reshape it to (rows, columns)"),
        (
            ["fit", "words.parquet", "-o", "new"],
            "but got something else in 'animal': leave out such columns (--ignore)",
        ),
        (["fit", "rows.npy", "-o", "new", "--folder", "new/run"], "--folder must be a folder outside of --out"),
        (["fit", "map/points.npy", "-o", "map"], "the rows must not be in the folder of --out"),
        (["fit", "rows.npy", "--labels", "map/points.npy", "-o", "map"], "--labels must not be in the folder of --out"),
        (["fit", "rows.npy", "-o", "new", "--folder", "few.npy"], "--folder must be a folder, but"),
        (["fit", "rows.npy", "--labels", "gap.csv", "-o", "new"], "gap.csv has no label in row 90"),
        (["transform", "map", "rows.npy", "-o", "rows.npy"], "--out and the file of the rows are both"),
        (["transform", "map", "rows.npy", "-o", "z.txt"], "must end in .npy or .csv"),
        (["transform", "new", "rows.npy", "-o", "z.npy"], "not the folder of an embedding"),
    ]:
        files = [
            str(tmp_path / word) if "." in word or word in ("map", "new", "new/run") else word for word in arguments
        ]
        with pytest.raises(SystemExit):
            main(["embed", *files])
        assert message in capsys.readouterr().err
