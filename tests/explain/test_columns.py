"""The masker of tables."""

import json

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from khot.errors import KhotError
from khot.explain import Columns, Patches
from tests.explain.chosen import HALF


def test_columns_are_replaced_by_their_means():
    X = np.array([[1.0, 10.0], [3.0, 30.0]])  # noqa: N806
    masker = Columns().fit(X)
    np.testing.assert_array_equal(masker.mask(X, np.array([[True, False], [False, True]])), [[1, 20], [2, 30]])
    np.testing.assert_allclose(masker.encode(X).codes, [[-1, -1], [1, 1]], rtol=1e-6)
    given = Columns(baseline=[0.0, 5.0]).fit(X)
    np.testing.assert_array_equal(given.mask(X, np.zeros((2, 2), bool)), [[0, 5], [0, 5]])


def test_groups_of_columns_are_one_item():
    X = np.array([[1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])  # noqa: N806
    masker = Columns(groups=[[1, 2], [0]]).fit(X)
    assert masker.encode(X).present.shape == (2, 2)
    np.testing.assert_array_equal(masker.mask(X, np.array([[True, False]] * 2)), [[2, 0, 1], [2, 1, 0]])
    assert masker.pieces(X[0]) == [("1 = 0, 2 = 1", 0), ("0 = 1", 1)]


def test_data_frames_stay_data_frames():
    frame = pandas.DataFrame({"age": [1, 3], "pay": [10.0, 30.0]}, index=["x", "y"])
    masker = Columns(groups=[["pay"], ["age"]]).fit(frame)
    masked = masker.mask(frame, np.array([[True, False]] * 2))
    assert list(masked.columns) == ["age", "pay"]
    assert list(masked.index) == ["x", "y"]
    assert masked["age"].tolist() == [2, 2]
    assert masker.pieces(frame.iloc[0]) == [("pay = 10", 0), ("age = 1", 1)]


def test_tables_of_arrow_go_by_their_names():
    table = pyarrow.table({"age": [1, 3], "pay": [10.0, 30.0], "kids": [1, 2]})
    masker = Columns(groups=[["pay"], ["age", "kids"]]).fit(table)
    assert masker.names_ == ["age", "pay", "kids"]
    other = table.select(["kids", "pay", "age"])
    np.testing.assert_array_equal(masker.encode(other).codes, masker.encode(table).codes)
    masked = masker.mask(other, np.array([[True, False]] * 2))
    assert masked.to_pydict() == {"kids": [1.5, 1.5], "pay": [10.0, 30.0], "age": [2, 2]}
    assert masked.schema.field("age").type == pyarrow.int64()
    assert masker.pieces(other.slice(0, 1)) == [("pay = 10", 0), ("age = 1, kids = 1", 1)]
    with pytest.raises(KhotError, match="'age' is not there"):
        masker.encode(other.rename_columns(["kids", "pay", "years"]))
    np.testing.assert_array_equal(masker.encode(np.asarray(table)).codes, masker.encode(table).codes)
    named = Columns(names=["Age", "Pay", "Kids"]).fit(table)
    assert named.pieces(other.slice(0, 1))[0] == ("Age = 1", 0)


@pytest.mark.parametrize("package", [pandas, polars])
def test_data_frames_keep_the_types_of_columns(package):
    frame = package.DataFrame({"age": [1, 3], "pay": [10.0, 30.0], "kids": [1, 2]})
    frame = frame.astype({"age": "int32"}) if package is pandas else frame
    masker = Columns().fit(frame)
    other = frame[["kids", "pay", "age"]]
    masked = masker.mask(other, np.array([[False, True, False]] * 2))
    assert type(masked) is type(frame)
    assert list(masked.columns) == ["kids", "pay", "age"]
    assert (masked["age"].to_list(), masked["kids"].to_list()) == ([2, 2], [1.5, 1.5])
    assert (masked["age"].dtype, masked["pay"].dtype) == (frame["age"].dtype, frame["pay"].dtype)
    row = other.iloc[0] if package is pandas else other[0]
    assert masker.pieces(row) == [("age = 1", 0), ("pay = 10", 1), ("kids = 1", 2)]


def test_data_frames_with_numbers_for_names():
    frame = pandas.DataFrame([[1.0, 10.0], [3.0, 30.0]])
    masked = Columns().fit(frame).mask(frame[[1, 0]], HALF)
    pandas.testing.assert_frame_equal(masked, pandas.DataFrame({1: [20.0, 30.0], 0: [1.0, 2.0]})[[1, 0]])
    with pytest.raises(KhotError, match="different names"):
        Columns().fit(pandas.DataFrame([[1.0, 10.0]], columns=["a", "a"]))


def test_columns_take_numbers_of_numpy():
    X = np.array([[1.0, 10.0], [3.0, 30.0]], np.float32)  # noqa: N806
    masker = Columns(groups=np.array([[1], [0]]), baseline=np.array([0, 5], np.float32), names=np.array(["a", "b"]))
    masker.fit(X)
    assert masker.pieces(X[0]) == [("b = 10", 0), ("a = 1", 1)]
    json.dumps([masker.groups, masker.baseline, masker.names])
    assert Patches(size=np.int64(2), baseline=np.float32(0.5)).fit(np.zeros((1, 4, 4))).baseline == 0.5


def test_long_numbers_are_shown_in_full():
    assert Columns(names=["id"]).fit([[1], [2]]).pieces([123456789]) == [("id = 123456789", 0)]
    assert Columns().fit([[1], [2]]).pieces(np.array([0.1], np.float32)) == [("0 = 0.1", 0)]
    assert Columns().fit([[1], [2]]).pieces(np.array([True])) == [("0 = 1", 0)]
