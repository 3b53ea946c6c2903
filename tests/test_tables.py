"""Rows, labels and names of columns from CSV, NPZ and Parquet files."""

from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from khot._tables import (
    Layout,
    read_labels,
    read_layout,
    read_matrix,
    read_named,
    read_queries,
    read_rows,
    read_texts,
    write_csv,
    write_layout,
)
from khot.errors import DataFileError


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "header", "names"),
    [
        ("a,b,y\n1,2,x\n3,4,z", None, ["a", "b"]),
        ("1,2,x\n3,4,z", None, None),
        (" a , b , y \n1,2,x\n3,4,z", None, ["a", "b"]),
        ("2019,2020,y\n1,2,0\n3,4,1", None, ["2019", "2020"]),  # y is above numbers
        ("2019,2020,y\n1,2,x\n3,4,z", True, ["2019", "2020"]),
        ("0,1,2\n1,2,0\n3,4,1", True, ["0", "1"]),
        ("0,1,2\n1,2,0\n3,4,1", None, None),
    ],
)
def test_names_in_the_first_line(tmp_path, text, header, names):
    rows, labels, layout = read_rows(written(tmp_path, text), header=header)
    assert layout.columns == names
    assert len(rows) == len(labels) == text.count("\n") + (names is None)


@pytest.mark.parametrize("missing", ["", "NA", "nan"])
def test_a_missing_number_in_the_first_line_is_no_name(tmp_path, missing):
    with pytest.raises(DataFileError, match="in row 1, column 2: fill in missing numbers"):
        read_named(written(tmp_path, f"1,{missing},3\n4,5,6\n7,8,9"))
    assert read_named(written(tmp_path, "1,2,3\n4,5,6\n7,8,9"))[0].shape == (3, 3)


def test_a_column_must_be_left(tmp_path):
    table = written(tmp_path, "a,b,y\n1,2,0\n3,4,1")
    for read in (read_rows, read_named):
        with pytest.raises(DataFileError, match="only columns that are ignored, a, b, y: ignore fewer"):
            read(table, ignored=["a", "b", "y"])
        assert len(read(table, ignored=["a"])[0]) == 2


def test_only_plain_whole_numbers_become_numbers(tmp_path):
    for cells, wanted in ((["0", "-3"], [0, -3]), (["007", "7"], ["007", "7"]), (["1_0", "10"], ["1_0", "10"])):
        labels = read_rows(written(tmp_path, "\n".join(f"1.5,{cell}" for cell in cells)))[1]
        assert labels.tolist() == wanted


def test_layouts_are_kept(tmp_path):
    for layout in (Layout(["a"], "y", 1), Layout(None, None, 0)):
        write_layout(tmp_path / "table.json", layout)
        assert read_layout(tmp_path / "table.json") == layout
    assert read_layout(tmp_path / "none.json") is None
    for damaged in ("[]", "{", '{"columns": [1], "label": "y", "place": 1}'):
        (tmp_path / "table.json").write_text(damaged)
        with pytest.raises(DataFileError, match="damaged"):
            read_layout(tmp_path / "table.json")
    (tmp_path / "table.json").write_text('{"columns": ["1"], "label": "y", "place": 1}')
    assert read_layout(tmp_path / "table.json") == Layout(["1"], "y", 1)


def test_long_texts_are_read(tmp_path):
    long = "word " * 40_000
    assert read_texts(written(tmp_path, f"id,review\n1,{long}\n"), "review") == [long]


def test_an_empty_line_is_an_empty_text_if_there_is_one_column(tmp_path):
    assert read_texts(written(tmp_path, "\nreview\nfine\n\ndull\n"), "review") == ["fine", "", "dull"]
    assert read_texts(written(tmp_path, "id,review\n1,fine\n\n2,dull\n"), "review") == ["fine", "dull"]
    assert len(read_named(written(tmp_path, "a\n1\n\n2\n"))[0]) == 2


def test_a_required_column(tmp_path):
    table = written(tmp_path, "a,b\n1,2\n")
    assert read_named(table, "y")[1] == ["a", "b"]
    assert read_named(table, "a", required=True)[1] == ["b"]
    with pytest.raises(DataFileError, match="no column 'y'"):
        read_named(table, "y", required=True)


@pytest.mark.parametrize(
    ("bad", "good", "message"),
    [
        ("a;b;y\n1;2;x", "a,b,y\n1,2,x", "only one column"),
        ("a,a,y\n1,2,x", "a,b,y\n1,2,x", "several columns with the name 'a'"),
        ("a,b,y\n1,,x", "a,b,y\n1,0,x", "got '' in row 1 below the names, column 'b': fill in missing numbers"),
        ("a,b,y\n1,NaN,x", "a,b,y\n1,9e9,x", "got 'NaN' in row 1 below the names, column 'b': fill in missing numbers"),
        ("1,2,x\nNA,3,x", "1,2,x\n-1,3,x", "got 'NA' in row 2, column 1: fill in missing numbers"),
        ("a,b,y\n1,u,x", "a,b,y\n1,2,x", "got 'u' in row 1 below the names, column 'b': leave out such columns"),
        ('a,b,y\n1,"2,5",x', "a,b,y\n1,2.5,x", "got '2,5' .*: write decimals with a point"),
        (",b,y\n1,2,x", "a,b,y\n1,2,x", "a column without a name, number 1: name it, or leave it out"),
        ("a,b,y\n1,2,x\n1,2, ", "a,b,y\n1,2,x\n1,2,z", "no label in row 2: fill it in"),
        (
            "a,b,y\n1,2,x\n1,2",
            "a,b,y\n1,2,x\n1,2,z",
            "3 columns in its first line and 2 in line 3: write the same number",
        ),
        ("a,b,y\n1,2,x\n\n3,4", "a,b,y\n1,2,x\n\n3,4,z", "and 2 in line 4: write the same number"),
        ("\n\n1,2,x\n\n3,4", "\n\n1,2,x\n\n3,4,z", "and 2 in line 5: write the same number"),
        ('a,b,y\n1,2,"x\n\nz"\n3,"4\n5"\n', 'a,b,y\n1,2,"x\n\nz"\n3,4,z', "and 2 in line 5: write the same number"),
        (
            "a;b;y\n1,5;2,5;x",
            "a,b,y\n1.5,2.5,x",
            "1 columns in its first line and 3 in line 2: separate the columns by commas, not by ';', and write",
        ),
        (
            "1,5;2;x\n1;2;x",
            "1.5,2,x\n1,2,x",
            "2 columns in its first line and 1 in line 2: separate the columns by commas",
        ),
        ("a,b,y\n", "a,b,y\n1,2,x", "has no rows: write one row on each line"),
    ],
)
def test_bad_tables(tmp_path, bad, good, message):
    with pytest.raises(DataFileError, match=message):
        read_rows(written(tmp_path, bad))
    rows, labels, _ = read_rows(written(tmp_path, good))
    assert rows.shape == (len(labels), 2)


def test_bad_npz(tmp_path):
    path = tmp_path / "rows.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros((2, 2)))
    with pytest.raises(DataFileError, match="is no NPZ file"):
        read_rows(path)
    np.savez(path, X=np.zeros((2, 2)), y=np.zeros(3))
    with pytest.raises(DataFileError, match=r"2 rows X, but labels y of shape \(3,\)"):
        read_queries(path, 2, None)
    with pytest.raises(DataFileError, match="it has the arrays X and y"):
        read_rows(path, label="kind")
    np.savez(path, X=np.zeros((2, 2)), y=np.zeros(2))
    for rows, labels in (read_queries(path, 2, None), read_rows(path)[:2]):
        assert len(rows) == len(labels) == 2


def test_names_that_are_numbers(tmp_path):
    table = "0,1,2,3,kind\n5,1,7,2,x\n4,1,7,3,y\n"
    rows, labels, layout = read_rows(written(tmp_path, table))
    assert len(rows) == len(labels) == 2
    assert layout.columns == ["0", "1", "2", "3"]
    short = Layout(["0", "1"], "kind", 2)
    assert read_queries(written(tmp_path, "1,0\n5,6\n7,8"), 2, short)[0].tolist() == [[6, 5], [8, 7]]


def test_labels_have_no_spaces_around_them(tmp_path):
    path = written(tmp_path, "a, y\n1, x\n2,x")
    _, labels, layout = read_rows(path)
    assert list(labels) == list(read_queries(path, 1, layout)[1]) == ["x", "x"]


def test_a_file_of_labels(tmp_path):
    for text in ("kind\n0\n1\n1\n", "0\n1\n1\n\n\n", "kind\n0\n1\n1\n\n"):
        assert read_labels(written(tmp_path, text), 3).tolist() == [0, 1, 1]
    for text in ("kind\na\nb\nb", "a\nb\nb", "\na\n b \nb\n"):
        assert read_labels(written(tmp_path, text), 3).tolist() == ["a", "b", "b"]
    for text in ("kind\n0\n\n1\n", "kind\n0\n1\n\n", "a\n\nb\nb\n", "kind\na\n\nb"):
        with pytest.raises(DataFileError, match=r"has no label in row [23]: fill it in"):
            read_labels(written(tmp_path, text), 3 + (text[0] == "a"))
    for text in ("kind\n0\n1\n", "kind\n0\n1\n1\n0\n"):
        with pytest.raises(DataFileError, match="one label for each of 3 rows"):
            read_labels(written(tmp_path, text), 3)


def test_ignored_columns(tmp_path):
    path = written(tmp_path, "id,a,y,b\nk1,1,x,2\nk2,3,z,4")
    rows, labels, layout = read_rows(path, label="y", ignored=["id"])
    assert rows.tolist() == [[1, 2], [3, 4]]
    assert list(labels) == ["x", "z"]
    for text in ("id,b,a\nq,2,1", "b,a\n2,1"):
        assert read_queries(written(tmp_path, text), 2, layout)[0].tolist() == [[1, 2]]
    with pytest.raises(DataFileError, match="has no column 'name', but columns id, a, y, b"):
        read_rows(written(tmp_path, "id,a,y,b\nk1,1,x,2"), ignored=["name"])
    with pytest.raises(DataFileError, match="has no column 'name', but no names in its first line"):
        read_rows(written(tmp_path, "1,2,x"), ignored=["name"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_of_ignored_columns_are_not_separated_by_commas(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        path.write_text("id,a,y\n1,2,3")
    else:
        parquet.write_table(pyarrow.table({"id": [1], "a": [2], "y": [3]}), path)
    for names in ("y,id", "y, id"):
        with pytest.raises(DataFileError, match=f"no column '{names}', but columns id, a, y: separate names by spaces"):
            read_matrix(path, ignored=[names])
    with pytest.raises(DataFileError, match="no column 'y,b', but columns id, a, y: choose one of them"):
        read_matrix(path, ignored=["y,b"])
    assert read_matrix(path, ignored=["y", "id"]).names == ["a"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_unknown_columns_are_named_before_their_cells_are_read(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        path.write_text("a,b,kind\n1,2,x")
    else:
        parquet.write_table(pyarrow.table({"a": [1], "b": [2], "kind": ["x"]}), path)
    with pytest.raises(DataFileError, match=r"has a column 'kind', with which the model was not trained: .*--ignore"):
        read_matrix(path, columns=["b", "a"])
    assert read_matrix(path, ignored=["kind"], columns=["b", "a"]).rows.tolist() == [[2, 1]]


def test_columns_of_words_in_parquet(tmp_path):
    path = tmp_path / "table.parquet"
    parquet.write_table(pyarrow.table({"a": [1, 2], "city": ["x", "y"], "kind": ["u", "v"]}), path)
    words = "numbers in all columns, but got something else in 'city', 'kind'"
    with pytest.raises(
        DataFileError, match=rf"{words}: leave out such columns \(--ignore\), or encode them as numbers"
    ):
        read_matrix(path)
    with pytest.raises(DataFileError, match=r"all columns but the label, but got something else in 'city': leave out"):
        read_matrix(path, label="kind")
    assert read_matrix(path, ignored=["city", "kind"]).names == ["a"]
    with pytest.raises(DataFileError, match="columns of numbers, but got none: ignore fewer"):
        read_matrix(path, ignored=["a", "city", "kind"])


def test_files_of_other_kinds(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((2, 2)))
    with pytest.raises(DataFileError, match="must be a CSV or NPZ file"):
        read_rows(tmp_path / "rows.npy")
    np.savez(tmp_path / "rows.npz", X=np.zeros((2, 2)), y=np.zeros(2))
    assert read_rows(tmp_path / "rows.npz")[0].shape == (2, 2)


def test_texts_with_ends_of_lines_come_back(tmp_path):
    path, rows = tmp_path / "table.csv", [["a\rb", "1"], ["c\nd", "2"], ["e\r\nf", "3"], ['g "h", i', "4"], ["j", "5"]]
    write_csv(path, ["text", "id"], rows)
    assert read_texts(path, "text") == [row[0] for row in rows]
    assert path.read_bytes().endswith(b"\nj,5\n")


def test_columns_without_a_name_are_refused(tmp_path):
    path = written(tmp_path, ",a,b\n0,1,2\n1,3,4\n")
    with pytest.raises(DataFileError, match="column without a name, number 1: name it, or leave it out"):
        read_named(path)
    assert read_named(path, ignored=[""])[1] == ["a", "b"]


def test_texts_of_parquet(tmp_path):
    path = tmp_path / "table.parquet"
    columns = {"bytes": ["été".encode(), None], "numbers": [1, 2], "lists": [["a"], ["b"]], "damaged": [b"\xff", b""]}
    parquet.write_table(pyarrow.table(columns), path)
    assert read_texts(path, "bytes") == ["été", ""]
    assert read_texts(path, "numbers") == ["1", "2"]
    with pytest.raises(DataFileError, match=r"must have texts in column 'lists', but got \['a'\]"):
        read_texts(path, "lists")
    with pytest.raises(DataFileError, match="bytes in column 'damaged' that are no text"):
        read_texts(path, "damaged")


def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path):
    with pytest.raises(DataFileError, match="cannot be read as CSV"):
        read_rows(written(tmp_path, 'a,b,y\n1,2,"x\n3,4,z\n5,6,x\n'))
    rows, labels, _ = read_rows(written(tmp_path, 'a,b,y\n1,2,"x\n"\n3,4,"z ""q"""\n'))
    assert rows.tolist() == [[1, 2], [3, 4]]
    assert labels.tolist() == ["x", 'z "q"']
