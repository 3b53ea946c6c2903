import warnings

import numpy as np
import pytest
import torch
from torch import nn

from khot.errors import BlackBoxError, KhotError
from khot.explain import SubsetExplainer, Words, fidelity
from tests.explain.problems import TEXTS, X, from_last_column, from_words, quick


@pytest.mark.parametrize("sampler", ["subset", "l2x"])
def test_the_column_that_decides_is_found(sampler):
    explainer = quick(sampler=sampler).fit(from_last_column, X)
    explanation = explainer.explain(X[:50])
    assert (explanation.chosen.sum(1) == 1).all()
    assert explanation.chosen[:, 4].mean() > 0.95
    assert (explanation.full.argmax(1) == explanation.masked.argmax(1)).mean() > 0.95
    again = explainer.explain(X[:50])
    np.testing.assert_array_equal(again.scores, explanation.scores)


def test_of_one_item_both_samplers_train_the_same():
    ours, theirs = (quick(sampler=s, epochs=2).fit(from_last_column, X).explain(X).scores for s in ("subset", "l2x"))
    np.testing.assert_array_equal(ours, theirs)


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
    with pytest.raises(KhotError, match="at most k = 2 items of a row can be forced, but got 5"):
        explainer.explain(X[:20], forced=np.ones(5, bool))


def test_limits_for_all_rows_hold_in_explain_too(tmp_path):
    last = np.array([False, False, False, False, True])
    explainer = quick(k=2, epochs=1)
    with pytest.warns(UserWarning, match="no row has more than k = 2 items"):
        explainer.fit(from_last_column, X, forced=last, eligible=torch.tensor([True] + [False] * 4))
    explainer.save(tmp_path)
    for one in (explainer, SubsetExplainer.load(tmp_path)):
        assert one.explain(X[:5]).chosen.tolist() == [[True, False, False, False, True]] * 5
    with pytest.warns(UserWarning, match="all of the k = 1 items of each row are forced") as caught:
        quick(k=1, epochs=1).fit(from_last_column, X, forced=last)
    assert caught[0].filename == __file__
    assert not explainer.explain(X[:5], forced=~(last | True)).chosen[:, 4].any()
    rows = quick(k=2, epochs=1).fit(from_last_column, X, forced=np.tile(last, (len(X), 1)))
    assert rows.explain(X[:5]).chosen.sum() == 10  # limits of other rows do not matter


def test_the_black_box_is_called_a_bounded_number_of_times():
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return from_last_column(rows)

    explainer = quick(epochs=2, model_batch_size=256, random_choices=0).fit(counted, X)
    assert calls == [256, 256, 88]
    explainer.explain(X[:10])
    assert calls[3:] == [10, 10]
    calls.clear()
    assert quick(epochs=1, model_batch_size=256).fit(counted, X).random_choices_ == 3  # of few rows
    assert calls == [256, 256, 88] * 4
    calls.clear()
    assert quick(epochs=1, model_batch_size=1000).fit(counted, np.tile(X, (4, 1))[:2000]).random_choices_ == 0
    assert calls == [1000, 1000]


def test_few_rows_are_explained_better_than_at_random():
    """Of 30 columns two decide; without the answers to random choices 150 rows are learnt by heart."""
    rows = np.random.RandomState(1).randn(1150, 30)
    model = lambda given: from_last_column(np.tile(np.asarray(given)[:, :2].sum(1, keepdims=True), 5))  # noqa: E731
    explainer = SubsetExplainer(2, temperature=0.5).fit(model, rows[:150])
    explanation = explainer.explain(rows[150:])
    assert fidelity.post_hoc_accuracy(explanation).value > 0.9 > fidelity.random_accuracy(explanation, model).value


@pytest.mark.parametrize(("rows", "epochs"), [(60, 50), (300, 25)])
def test_of_few_rows_the_search_patience_and_training_last_for_50_steps(rows, epochs):
    explainer = SubsetExplainer(1, random_state=0).fit(from_last_column, X[:rows])
    assert len(explainer.history_) == epochs  # more than the 20 that are the most by default
    assert fidelity.post_hoc_accuracy(explainer.explain(X)).value > 0.95


def test_a_predictor_that_has_learnt_nothing():
    def from_two_signs(rows):
        p = 1 / (1 + np.exp(-9 * rows[:, 0] * rows[:, 1]))
        return np.stack([1 - p, p], 1)

    with pytest.warns(
        UserWarning, match="the predictor hardly knows .* is 0.6.*, more epochs, or a larger k"
    ) as caught:
        quick(k=1, epochs=2, random_choices=0).fit(from_two_signs, X)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(k=1).fit(from_last_column, X)
        for certain in (0.5, 1.0):  # there is nothing to learn
            constant = lambda rows, p=certain: np.tile([p, 1 - p], (len(rows), 1))  # noqa: E731
            for for_class in (False, True):
                quick(k=1, epochs=1, for_class=for_class).fit(constant, X)


def test_the_temperature_is_searched_on_held_out_rows(capsys):
    explainer = quick(temperature="search", epochs=1, search_epochs=1, verbose=True).fit(from_last_column, X[:200])
    printed = capsys.readouterr().out
    assert printed.count("after a short training") == 5
    assert printed.splitlines()[5] == f"temperature {explainer.temperature_:g}:"
    assert list(explainer.search_) == [0.1, 0.5, 1.0, 2.0, 5.0]
    assert explainer.temperature_ == min(explainer.search_, key=explainer.search_.get)
    assert len(explainer.history_) == 17  # of three steps, as long as each training of the search, which has 50 steps


def test_the_seed_fixes_the_result(tmp_path):
    first, second, other = (
        quick(epochs=2, random_state=seed).fit(from_last_column, X).explain(X[:5]).scores for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_networks_of_ones_own():
    selector = nn.Linear(5, 5)

    class Predictor(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 2)

        def forward(self, codes, mask):
            return self.layer(codes * mask)

    before = selector.weight.clone()
    explainer = quick(selector=selector, predictor=Predictor(), epochs=3).fit(from_last_column, X)
    assert torch.equal(selector.weight, before)
    assert not torch.equal(explainer.module_.selector.weight, before)
    assert explainer.explain(X[:3]).chosen.sum() == 3
    no_parameters = quick(selector=nn.Identity(), predictor=Predictor(), epochs=1).fit(from_last_column, X)
    assert no_parameters.explain(X[:3]).chosen.argmax(1).tolist() == X[:3].argmax(1).tolist()


def test_the_black_box_gets_rows_of_its_own():
    def spoils(rows):
        answer = from_last_column(rows)
        rows[:] = 0
        return answer

    rows = X.copy()
    explainer = quick(epochs=1).fit(spoils, rows)
    explainer.explain(rows[:9])
    np.testing.assert_array_equal(rows, X)


def test_few_rows_and_small_batches():
    for rows, options in ((X[:2], {}), (X[:9], {"batch_size": 1}), (X[:9], {"validation_share": 0.9})):
        assert quick(epochs=1, **options).fit(from_last_column, rows).explain(X[:3]).chosen.sum() == 3


def test_a_black_box_with_other_classes():
    explainer = quick(epochs=1).fit(from_last_column, X)
    with pytest.raises(BlackBoxError, match=r"shape \(3, 2\)"):
        explainer.explain(X[:3], lambda rows: np.full((len(rows), 4), 0.25))

    class Empty:
        def __len__(self):
            return 0

        def __call__(self, rows):
            return from_last_column(rows)[:, ::-1]

    turned = explainer.explain(X[:3], Empty())
    np.testing.assert_allclose(turned.full, from_last_column(X[:3])[:, ::-1], rtol=1e-5)


def test_half_precision_is_precise_enough():
    def rough(rows):
        return torch.from_numpy(from_last_column(rows)).bfloat16()

    outputs = quick(epochs=1).fit(rough, X).explain(X[:50]).full
    np.testing.assert_allclose(outputs.sum(1), 1, rtol=1e-6)


def test_a_sentence_does_not_depend_on_other_rows():
    texts = ["Great plot. Dull music here!", "Fine. Poor scene, " + "very " * 30 + "dull."]
    explainer = quick(masker="sentences", epochs=1).fit(from_words, [f"So. {text}." for text in TEXTS])
    alone, together = explainer.explain(texts[:1]).scores[0], explainer.explain(texts).scores[0]
    np.testing.assert_allclose(alone, together, rtol=1e-5)


def test_a_tensor_is_an_output_and_one_class_is_enough():
    explainer = quick(epochs=1).fit(lambda rows: torch.tensor([[1.0, 0.0]]).expand(len(rows), 2), X)
    assert explainer.explain(X[:3]).chosen.sum(1).tolist() == [1, 1, 1]


def test_verbose_prints_the_losses(capsys):
    quick(epochs=2, verbose=True).fit(from_last_column, X)
    printed = capsys.readouterr().out
    assert printed.startswith("temperature ")
    assert "epoch 2 of 2" in printed
