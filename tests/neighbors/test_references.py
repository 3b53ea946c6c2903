"""References may be added, of new classes and other types of labels, and their votes are the prediction."""

import numpy as np
import pytest

from khot.errors import InvalidTypeError, InvalidValueError
from tests.neighbors.problems import blobs, quick

X, Y = blobs()


def test_added_references_vote_and_may_be_of_a_new_class():
    X, y = blobs()  # noqa: N806
    model = quick().fit(X, np.array(["b", "c", "d"])[y])
    far = np.full((5, 4), -30.0)
    model.add_references(far, ["a"] * 5)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.predict(far[:1]).tolist() == ["a"]
    assert model.kneighbors(far[:1])[1].tolist() == [[60, 61, 62]]
    assert model.score(X, np.array(["b", "c", "d"])[y]) > 0.9
    with pytest.raises(InvalidTypeError, match="labels of the kind seen in fit"):
        model.add_references(far, [1] * 5)


def test_whole_numbers_stay_whole_when_references_are_added_with_floats():
    X, y = blobs()  # noqa: N806
    model = quick().fit(X, y).add_references(X, y.astype(float))
    assert model.classes_.dtype == y.dtype
    with pytest.raises(InvalidValueError, match="label type"):
        model.add_references(X[:1], [0.5])


def test_the_prediction_has_the_largest_share_of_tied_votes():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 4  # noqa: N806
    model = quick(n_neighbors=4, epochs=1).fit(X, y)
    shares = model.predict_proba(X)
    top = np.sort(shares, 1)[:, -2:]
    assert ((top[:, 1] - top[:, 0] > 0) & (top[:, 1] - top[:, 0] < 1e-8)).sum() > 10
    assert np.array_equal(model.classes_[shares.argmax(1)], model.predict(X))
    assert np.allclose(shares.sum(1), 1, atol=1e-15)


def test_other_numbers_of_neighbors():
    model = quick(epochs=1).fit(X, Y)
    distances, indices = model.kneighbors(X[:5])
    more, rows = model.kneighbors(X[:5], n_neighbors=7)
    assert np.array_equal(more[:, :3], distances)
    assert np.array_equal(model.kneighbors(X[:5], 7, return_distance=False), rows)
    assert np.array_equal(rows[:, :3], indices)
    with pytest.raises(InvalidValueError, match="choose fewer neighbours"):
        model.kneighbors(X, n_neighbors=61)


@pytest.mark.parametrize("label", [300.0, -1.0])
def test_labels_of_references_may_need_a_larger_type(label: float):
    model = quick(epochs=1).fit(X, Y.astype(np.uint8))
    model.add_references(X[:1], [label])
    assert model.classes_.tolist() == sorted([0, 1, 2, int(label)])


@pytest.mark.parametrize(
    ("labels", "more"), [(np.uint64(2**60) + Y.astype(np.uint64), np.array([-5])), (Y / 1.0, np.array([2**53 + 1]))]
)
def test_labels_of_references_that_have_no_type_in_common(labels: np.ndarray, more: np.ndarray):
    model = quick(epochs=1).fit(X, labels)
    with pytest.raises(InvalidValueError, match="go together with those of fit"):
        model.add_references(X[:1], more)
    assert len(model.references_) == len(X)
