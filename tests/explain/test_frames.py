"""Data frames: columns by name, rows by their index."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain import Columns, SubsetExplainer, Tokens, fidelity
from tests.explain.problems import X, from_last_column, quick

NAMES = list("abcde")
ROWS = X[:60]


def from_frame(rows):
    return from_last_column(rows.to_numpy())


def fitted(frame):
    return quick(k=1, epochs=1).fit(from_frame, frame)


@pytest.mark.parametrize("package", [pandas, polars])
def test_the_model_gets_the_columns_in_the_order_of_fit(package):
    frame = package.DataFrame(dict(zip(NAMES, ROWS.T, strict=True)))
    explainer = fitted(frame)
    straight, turned = explainer.explain(frame), explainer.explain(frame[NAMES[::-1]])
    np.testing.assert_array_equal(turned.full, straight.full)
    np.testing.assert_array_equal(turned.masked, straight.masked)
    assert turned.items == straight.items
    assert fidelity.random_accuracy(turned, from_frame) == fidelity.random_accuracy(straight, from_frame)
    given = from_frame, explainer.masker_, frame[NAMES[::-1]], straight.chosen
    assert fidelity.post_hoc_accuracy_of(*given) == fidelity.post_hoc_accuracy(straight)


def test_columns_that_are_too_many_or_missing_are_named():
    frame = pandas.DataFrame(ROWS, columns=NAMES)
    explainer = fitted(frame)
    with pytest.raises(InvalidValueError, match="must have 5 columns as in fit, but got 6, such as 'id'"):
        explainer.explain(frame.assign(id=1))
    with pytest.raises(InvalidValueError, match="'b' is not there"):
        explainer.explain(frame.drop(columns="b"))


def test_rows_are_named_by_the_index():
    frame = pandas.DataFrame(ROWS, columns=NAMES, index=[f"r{i}" for i in range(60)])
    explainer = fitted(frame)
    explanation = explainer.explain(frame[::-1])
    assert explanation.to_frame()["row"].tolist() == frame.index[::-1].tolist()
    assert explainer.explain(pandas.DataFrame(ROWS, columns=NAMES)[40:42]).to_records()[0]["row"] == 40
    assert explainer.explain(frame, row_names=range(60)).to_records()[1]["row"] == 1


def test_names_of_rows():
    explainer = fitted(pandas.DataFrame(ROWS, columns=NAMES))
    few = pandas.DataFrame(ROWS[:2], columns=NAMES)

    def names(given):
        return list(explainer.explain(few, row_names=given).row_names)

    assert names(np.array([3, 4])) == [3, 4]
    assert names([1, "a"]) == ["1", "a"]
    assert names([2**70, 1]) == [str(2**70), "1"]
    assert names(np.array(["2020-01-01", "2020-01-02"], "M8[ns]"))[1].startswith("2020-01-02T00")
    for unordered in ({1, 2}, {1: 2, 3: 4}, few, b"ab"):
        with pytest.raises(InvalidValueError, match="row_names must name the 2 rows"):
            names(unordered)
    with pytest.raises(InvalidTypeError, match="class_names must be a sequence"):
        SubsetExplainer(1, class_names={"good", "bad"}).fit(from_frame, few)


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: pandas.DataFrame(rows),
        lambda rows: polars.DataFrame(rows, orient="row"),
        lambda rows: pyarrow.table([pyarrow.array(column) for column in rows.T], names=list("abcd")),
    ],
)
def test_tokens_in_data_frames(make):
    rows = np.array([[3, 1, 2, 4], [5, 6, 7, 8]] * 20)
    model = lambda given: np.full((len(given), 2), 0.5)  # noqa: E731
    explainer = SubsetExplainer(1, masker=Tokens(), temperature=0.5, epochs=1, random_choices=0)
    explanation = explainer.fit(model, make(rows)).explain(make(rows))
    plain = explainer.explain(rows)
    assert explanation.items == plain.items
    assert all(items in ([str(number)] for number in row) for items, row in zip(plain.items, rows, strict=True))


@pytest.mark.parametrize("kind", [pandas.Categorical, lambda cells: np.array(cells, object)])
def test_numbers_that_are_written_as_texts_are_refused(kind):
    frame = pandas.DataFrame({"a": ROWS[:, 0]}).assign(c=kind(["1", "3"] * 30))
    with pytest.raises(InvalidTypeError, match="a table must consist of numbers"):
        Columns().fit(frame)
    with pytest.raises(InvalidTypeError, match="got texts"):
        Columns().fit(ROWS.astype(str).astype(object))


def test_whole_numbers_have_all_their_digits():
    rows = np.array([[10.0**12 + 1, 0.1], [20240115120000.0, -2.5]])
    masker = Columns().fit(rows)
    assert [text for text, _ in masker.pieces(rows[0])] == ["0 = 1000000000001", "1 = 0.1"]
    assert [text for text, _ in masker.pieces(rows[1])] == ["0 = 20240115120000", "1 = -2.5"]
