"""Parameters, models and networks: what is refused, and what scikit-learn does with them."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from torch import nn

from khot.errors import BlackBoxError, KhotError
from khot.explain import SubsetExplainer, Words
from tests.explain.problems import TEXTS, X, from_last_column, from_words, in_the_middle, quick


class _One(nn.Module):
    def forward(self, codes, mask):
        return (codes * mask)[:, :1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"selector": nn.Linear(5, 1)},
            r"selector must return .* shape \(2, 5\), but got .* of shape \(2, 1\)",
        ),
        ({"predictor": _One()}, r"predictor must return .* shape \(2, 2\), but got torch.float32 of shape \(2, 1\)"),
        ({"sampler": lambda logits, k, t, generator: logits[:, :1]}, "sampler must return .* a number for each item"),
        ({"sampler": lambda logits, k, t, generator: logits.detach().numpy()}, "sampler must return .* got ndarray"),
    ],
)
def test_networks_that_do_not_fit(options, message):
    with pytest.raises(KhotError, match=message):
        quick(**options).fit(from_last_column, X)


def test_a_failed_fit_changes_nothing():
    explainer = quick(epochs=2).fit(from_last_column, X)
    before = explainer.explain(X[:5]).scores
    for bad in (lambda rows: rows, in_the_middle):
        with pytest.raises(BlackBoxError):
            explainer.fit(bad, X)
        np.testing.assert_array_equal(explainer.explain(X[:5]).scores, before)
    masker = Words(length=12)
    first = quick(masker=masker, epochs=1).fit(from_words, TEXTS)
    scores = first.explain(TEXTS[:5]).scores
    quick(masker=masker, epochs=1).fit(from_words, ["other words", "great words"] * 50)
    np.testing.assert_array_equal(first.explain(TEXTS[:5]).scores, scores)


def test_names_of_classes_and_rows(tmp_path):
    explainer = quick(epochs=1, class_names=["no", "yes"]).fit(from_last_column, X)
    named = explainer.explain(X[:2], row_names=np.array([7, 8]))
    assert [row["row"] for row in json.loads(named.to_json())] == [7, 8]
    assert explainer.explain(X[:2], row_names=(1.5, None)).row_names == ["1.5", "None"]
    for bad in ([1], "ab", 3):
        with pytest.raises(KhotError, match="row_names must name the 2 rows of X"):
            explainer.explain(X[:2], row_names=bad)
    explainer.save(tmp_path)
    for one in (explainer, SubsetExplainer.load(tmp_path)):
        assert {line.split()[2] for line in str(one.explain(X[:9], from_last_column)).splitlines()[::3]} == {
            "no:",
            "yes:",
        }
    with pytest.raises(KhotError, match="must name the 2 classes"):
        quick(class_names=[*"abc"]).fit(from_last_column, X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (in_the_middle, r"raised ConnectionError for rows 256 to 511: timed out"),
        (lambda rows: from_last_column(rows)[:, 1], r"\(256, classes\).*got \(256,\) for rows 0 to 255"),
        (lambda rows: from_last_column(rows)[:-1], r"got \(255, 2\)"),
        (lambda rows: from_last_column(rows) * np.nan, "NaN or infinity"),
        (lambda rows: 2 * from_last_column(rows), "apply a softmax"),
        (lambda rows: np.stack([2 - rows[:, 0] * 0, -1 + rows[:, 0] * 0], 1), "apply a softmax"),
        (lambda rows: "positive", "must return numbers"),
        (lambda rows: np.ones((len(rows), 1)), "at least two classes"),
    ],
)
def test_broken_models(model, message):
    with pytest.raises(BlackBoxError, match=message):
        quick().fit(model, X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quick(k=0).fit(from_last_column, X), "k must be at least 1"),
        (lambda: quick(masker="letters").fit(from_last_column, X), "masker must be one of columns, words"),
        (lambda: quick(masker=3).fit(from_last_column, X), "an object with the methods fit, encode, mask, pieces"),
        (lambda: quick(masker=Words).fit(from_last_column, X), "an object with the methods"),
        (lambda: quick(selector=3).fit(from_last_column, X), "selector must be a torch.nn.Module"),
        (
            lambda: quick(selector=nn.Linear(7, 5)).fit(from_last_column, X),
            r"selector must take items of",
        ),
        (lambda: quick(predictor=nn.Linear(7, 2)).fit(from_last_column, X), "predictor must take items"),
        (lambda: quick(class_names=3).fit(from_last_column, X), "class_names must be a sequence of names, but got 3"),
        (lambda: quick(class_names="ab").fit(from_last_column, X), "class_names must be a sequence of names"),
        (lambda: quick(folder=3).fit(from_last_column, X), "folder must be a path, but got 3"),
        (lambda: quick(epochs=0).fit(from_last_column, X), "epochs must be at least 1"),
        (lambda: quick(search_epochs=0).fit(from_last_column, X), "epochs must be at least 1"),
        (lambda: quick(batch_size="a").fit(from_last_column, X), "batch_size must be an int"),
        (lambda: quick(device="gpu").fit(from_last_column, X), "device must be one of"),
        (lambda: quick(random_state=2**32).fit(from_last_column, X), r"at most 2\^32 - 1"),
        (lambda: quick().fit(from_last_column, iter(X)), "rows that can be counted"),
        (lambda: quick().fit(from_last_column, X, eligible="abc"), "eligible must be a bool array"),
        (lambda: quick().fit(from_last_column, X, eligible=np.zeros(5, bool)), "no item to choose"),
        (lambda: quick(sampler="lime").fit(from_last_column, X), "sampler must be one of subset, l2x"),
        (lambda: quick(temperature=-1.0).fit(from_last_column, X), "temperature must be positive"),
        (lambda: quick(validation_share=1.0).fit(from_last_column, X), "validation_share must lie below 1"),
        (lambda: quick(resume=True).fit(from_last_column, X), "resume needs the folder"),
        (lambda: quick().fit(None, X), "predict_proba must be a function"),
        (lambda: quick().fit(from_last_column, X[:1]), "at least 2 rows"),
        (lambda: quick().explain(X), "not fitted"),
        (lambda: quick().fit(from_last_column, X, eligible=[1, 0]), r"eligible must be a bool array of shape \(5,\)"),
        (lambda: quick().fit(from_last_column, X, forced=np.ones(4, bool)), "forced must be a bool array"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(KhotError, match=message):
        call()


def test_repr_shows_the_parameters_that_are_not_defaults():
    assert repr(SubsetExplainer(1, masker="words", epochs=20)) == "SubsetExplainer(k=1, masker='words')"


def test_a_clone_has_the_same_parameters_and_is_not_fitted():
    explainer = quick(k=2, masker=Words(length=12), epochs=1, class_names=("no", "yes"), selector=nn.Linear(5, 5))
    given = dict(explainer.get_params())
    cloned = clone(explainer)
    assert repr(cloned) == repr(explainer)
    assert cloned.get_params().keys() == given.keys()
    explainer.set_params(selector=None).fit(from_words, TEXTS)
    with pytest.raises(KhotError, match="not fitted"):
        clone(explainer).explain(TEXTS)
    after = explainer.get_params()
    assert all(after[name] is value for name, value in given.items() if name != "selector")  # stored as given
    once = clone(explainer).set_params(random_state=0).fit(from_words, TEXTS).explain(TEXTS[:9])
    np.testing.assert_array_equal(once.scores, explainer.explain(TEXTS[:9]).scores)


def test_parameters_may_be_numbers_of_numpy(tmp_path):
    plain = quick(k=2, epochs=1, random_state=3).fit(from_last_column, X)
    options = {"for_class": np.bool_(False), "random_state": np.int64(3), "model_batch_size": np.int64(256)}
    explainer = quick(k=np.int64(2), epochs=np.int64(1), **options).fit(from_last_column, X)
    np.testing.assert_array_equal(explainer.explain(X[:9]).scores, plain.explain(X[:9]).scores)
    explainer.save(tmp_path)
    assert SubsetExplainer.load(tmp_path).k == 2
