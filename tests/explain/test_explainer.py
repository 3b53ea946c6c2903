import numpy as np
import pytest
import torch
from torch import nn

from khot.errors import BlackBoxError, KhotError
from khot.explain import SubsetExplainer, Words

NOISE = np.random.RandomState(0)
X = NOISE.randn(600, 5)
WORDS = np.array(["plot", "actor", "scene", "music", "dull", "great", "fine", "poor"])
TEXTS = [" ".join([*NOISE.choice(WORDS[:4], NOISE.randint(1, 9)), w]) for w in NOISE.choice(WORDS[4:], 600)]


def from_last_column(rows):
    p = 1 / (1 + np.exp(-6 * np.asarray(rows)[:, 4]))
    return np.stack([1 - p, p], 1)


def from_words(rows):
    good = np.array([("great" in text) + ("fine" in text) - ("dull" in text) - ("poor" in text) for text in rows])
    p = 1 / (1 + np.exp(-3.0 * good))
    return np.stack([1 - p, p], 1)


def quick(k=1, **options):
    return SubsetExplainer(k, **{"temperature": 0.5, "epochs": 8, "batch_size": 50, "patience": None} | options)


@pytest.mark.parametrize("sampler", ["subset", "l2x"])
def test_the_column_that_decides_is_found(sampler):
    explainer = quick(sampler=sampler).fit(from_last_column, X)
    explanation = explainer.explain(X[:50])
    assert (explanation.chosen.sum(1) == 1).all()
    assert explanation.chosen[:, 4].mean() > 0.95
    assert (explanation.full.argmax(1) == explanation.masked.argmax(1)).mean() > 0.95
    again = explainer.explain(X[:50])
    np.testing.assert_array_equal(again.scores, explanation.scores)


def test_the_words_that_decide_are_found_and_short_texts_are_chosen_whole():
    explainer = quick(k=3, masker=Words(length=12), epochs=12).fit(from_words, TEXTS)
    explanation = explainer.explain(["great", "plot plot dull scene music", "..."])
    assert explanation.chosen.sum(1).tolist() == [1, 3, 0]
    assert explanation.items[0] == ["great"]
    assert "dull" in explanation.items[1]
    assert np.isneginf(explanation.scores[0, 1:]).all()


def test_eligible_and_forced_items():
    explainer = quick(k=2).fit(from_last_column, X)
    eligible = np.array([True, True, True, True, False])
    chosen = explainer.explain(X[:20], eligible=eligible).chosen
    assert not chosen[:, 4].any()
    assert (chosen.sum(1) == 2).all()
    forced = np.zeros((20, 5), bool)
    forced[:, 0] = True
    chosen = explainer.explain(X[:20], forced=forced).chosen
    assert chosen[:, 0].all()
    assert (chosen.sum(1) == 2).all()
    assert explainer.explain(X[:20], forced=np.ones(5, bool)).chosen.all()  # more than k


def test_training_respects_forced_items():
    forced = np.array([False, False, False, False, True])
    explainer = quick(k=2, epochs=1).fit(from_last_column, X, forced=forced)
    assert explainer.explain(X[:5], forced=forced).chosen[:, 4].all()


def test_the_black_box_is_called_a_bounded_number_of_times():
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return from_last_column(rows)

    explainer = quick(epochs=2, model_batch_size=256).fit(counted, X)
    assert calls == [256, 256, 88]
    explainer.explain(X[:10])
    assert calls[3:] == [10, 10]


def test_the_temperature_is_searched_on_held_out_rows():
    explainer = quick(temperature="search", epochs=1, search_epochs=1).fit(from_last_column, X[:200])
    assert list(explainer.search_) == [0.1, 0.5, 1.0, 2.0, 5.0]
    assert explainer.temperature_ == min(explainer.search_, key=explainer.search_.get)


def test_the_seed_fixes_the_result(tmp_path):
    first, second, other = (
        quick(epochs=2, random_state=seed).fit(from_last_column, X).explain(X[:5]).scores for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_stopped_training_goes_on(tmp_path):
    whole = quick(epochs=2, folder=tmp_path / "a").fit(from_last_column, X)
    again = quick(epochs=2, folder=tmp_path / "a", resume=True).fit(from_last_column, X)
    for name, value in whole.module_.state_dict().items():
        assert torch.equal(value, again.module_.state_dict()[name])


def test_networks_of_ones_own():
    selector = nn.Linear(5, 5)

    class Predictor(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 2)

        def forward(self, codes, mask):
            return self.layer(codes * mask)

    explainer = quick(selector=selector, predictor=Predictor(), epochs=3).fit(from_last_column, X)
    assert explainer.module_.selector is selector
    assert explainer.explain(X[:3]).chosen.sum() == 3


def _in_the_middle(rows):
    if rows[0, 0] == X[256, 0]:
        raise ConnectionError("timed out")
    return from_last_column(rows)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (_in_the_middle, r"raised ConnectionError for rows 256 to 511: timed out"),
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


def test_a_tensor_is_an_output_and_one_class_is_enough():
    explainer = quick(epochs=1).fit(lambda rows: torch.tensor([[1.0, 0.0]]).expand(len(rows), 2), X)
    assert explainer.explain(X[:3]).chosen.sum(1).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quick(k=0), "k must be at least 1"),
        (lambda: quick(masker="letters"), "masker must be one of columns, words"),
        (lambda: quick(masker=3), "has no fit"),
        (lambda: quick(sampler="lime"), "sampler must be one of subset, l2x"),
        (lambda: quick(temperature=-1.0), "temperature must be positive"),
        (lambda: quick(validation_share=1.0), "validation_share must lie below 1"),
        (lambda: quick(resume=True), "folder is None"),
        (lambda: quick().fit(None, X), "predict_proba must be a function"),
        (lambda: quick().fit(from_last_column, X[:1]), "at least two rows"),
        (lambda: quick().explain(X), "not fitted"),
        (lambda: quick().fit(from_last_column, X, eligible=[1, 0]), r"eligible must be a bool array of shape \(5,\)"),
        (lambda: quick().fit(from_last_column, X, forced=np.ones(4, bool)), "forced must be a bool array"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(KhotError, match=message):
        call()
