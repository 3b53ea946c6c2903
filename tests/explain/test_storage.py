"""A saved explainer chooses as before, and a folder that holds none is refused."""

import json

import numpy as np
import pytest
from torch import nn

from khot.errors import ModelFileError
from khot.explain import Columns, SubsetExplainer, Words
from khot.topk import neuralsort, successive_softmax
from tests.explain.problems import TEXTS, X, from_last_column, from_words, quick


class Half(Columns):
    """A masker of one's own."""


class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 2)

    def forward(self, codes, mask):
        return self.layer(codes * mask)


@pytest.mark.parametrize(
    ("masker", "rows", "model"),
    [
        (Columns(groups=[[0, 1], [2], [3], [4]]), X, from_last_column),
        (Words(length=12), TEXTS, from_words),
        ("sentences", [f"{text}. So. What?" for text in TEXTS], from_words),
    ],
)
def test_a_saved_explainer_chooses_as_before(masker, rows, model, tmp_path):
    explainer = quick(k=2, masker=masker, epochs=1).fit(model, rows)
    explainer.save(tmp_path / "why")
    loaded = SubsetExplainer.load(tmp_path / "why")
    before, after = explainer.explain(rows[:20]), loaded.explain(rows[:20], model)
    np.testing.assert_array_equal(before.chosen, after.chosen)
    np.testing.assert_array_equal(before.scores, after.scores)
    np.testing.assert_array_equal(before.masked, after.masked)
    assert before.items == after.items
    assert loaded.explain(rows[:3]).full is None  # the model is not stored
    assert (loaded.temperature_, loaded.history_) == (explainer.temperature_, explainer.history_)


def test_what_is_ones_own_is_given_again(tmp_path):
    selector, predictor = nn.Linear(5, 5), Seen()
    explainer = quick(selector=selector, predictor=predictor, epochs=1).fit(from_last_column, X)
    explainer.save(tmp_path)
    for missing in ({"selector": nn.Linear(5, 5)}, {"predictor": Seen()}, {}):
        with pytest.raises(ModelFileError, match="of your own: pass one of the same kind"):
            SubsetExplainer.load(tmp_path, **missing)
    loaded = SubsetExplainer.load(tmp_path, selector=nn.Linear(5, 5), predictor=Seen())
    np.testing.assert_array_equal(loaded.explain(X[:9]).scores, explainer.explain(X[:9]).scores)
    with pytest.raises(ModelFileError, match="does not fit the weights"):
        SubsetExplainer.load(tmp_path, selector=nn.Linear(5, 4), predictor=Seen())


def test_a_masker_of_ones_own(tmp_path):
    explainer = quick(masker=Half(), epochs=1).fit(from_last_column, X)
    explainer.save(tmp_path)
    with pytest.raises(ModelFileError, match="masker of your own"):
        SubsetExplainer.load(tmp_path)
    assert SubsetExplainer.load(tmp_path, masker=explainer.masker_).explain(X[:2]).chosen.sum() == 2


def test_the_relaxation_of_the_training_is_restored(tmp_path):
    explainer = quick(relaxation=neuralsort, epochs=1).fit(from_last_column, X[:60])
    explainer.save(tmp_path)
    assert SubsetExplainer.load(tmp_path).relaxation is neuralsort
    path = tmp_path / "explainer.json"
    numbers = json.loads(path.read_text())
    del numbers["relaxation"]  # as earlier versions wrote it
    path.write_text(json.dumps(numbers))
    assert SubsetExplainer.load(tmp_path).relaxation is successive_softmax
    explainer.set_params(relaxation=lambda keys, k, temperature: neuralsort(keys, k, temperature))
    with pytest.warns(UserWarning, match="relaxation is a function of your own"):
        explainer.save(tmp_path)
    assert SubsetExplainer.load(tmp_path).relaxation is successive_softmax  # a user's own is not stored


def test_damaged_folders(tmp_path):
    quick(epochs=1).fit(from_last_column, X).save(tmp_path)
    path = tmp_path / "explainer.json"
    numbers = json.loads(path.read_text())
    for change in (
        {"masker": {"name": "Items", "fields": {}}},
        {"masker": {"name": "os"}},
        {"classes_": "x"},
        {"k": 0},
        {"limits_": None},
        {"limits_": {}},
        {"sampler": "zz"},
        {"relaxation": "zz"},
        {"temperature_": None},
        {"own": 3},
    ):
        path.write_text(json.dumps(numbers | change))
        with pytest.raises(ModelFileError):
            SubsetExplainer.load(tmp_path)
    path.write_text(json.dumps({name: value for name, value in numbers.items() if name != "k"}))
    with pytest.raises(ModelFileError):
        SubsetExplainer.load(tmp_path)
    with pytest.raises(ModelFileError, match="not the folder of an explainer"):
        SubsetExplainer.load(tmp_path / "nowhere")


def test_what_was_not_written_by_khot_is_not_replaced(tmp_path):
    explainer = quick(k=2, epochs=1).fit(from_last_column, X[:60])
    (tmp_path / "explainer.json").write_text('{"mine": 1}')
    with pytest.raises(ModelFileError, match="holds other things than an explainer"):
        explainer.save(tmp_path)
    assert json.loads((tmp_path / "explainer.json").read_text()) == {"mine": 1}
    explainer.save(tmp_path / "new")
    explainer.save(tmp_path / "new")
