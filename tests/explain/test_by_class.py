"""Items that are evidence for the class that the model predicts."""

import numpy as np
import pytest
import torch
from torch import nn

from khot.errors import InvalidTypeError, InvalidValueError, RunFolderError
from khot.explain import SubsetExplainer, fidelity
from khot.explain._module import Explainer, SelectorByClass, evaluating, frozen
from khot.explain._objective import ExplainLoss
from khot.explain.networks import ColumnPredictor, ColumnSelector
from khot.explain.samplers import find as find_sampler
from khot.topk import successive_softmax
from khot.training import Step
from tests.explain.problems import TEXTS, from_words

NOISE = np.random.RandomState(0)
X = NOISE.randn(1000, 6)


def from_the_sum(rows):
    p = 1 / (1 + np.exp(-2 * np.asarray(rows).sum(1)))
    return np.stack([1 - p, p], 1)


def largest_of_three(rows):
    odds = np.exp(2 * np.asarray(rows)[:, :3])
    return odds / odds.sum(1, keepdims=True)


def quick(k=2, **options):
    common = {"temperature": 0.5, "epochs": 8, "batch_size": 50, "learning_rate": 3e-3, "patience": None}
    return SubsetExplainer(k, **{"for_class": True} | common | {"averaging": None} | options)


def test_the_columns_that_speak_for_the_class_are_found():
    """Of a sum, those are the largest where it is positive, and the smallest where it is negative."""
    explanation = quick().fit(from_the_sum, X).explain(X[:500])
    sign = np.where(explanation.full[:, 1] > 0.5, 1, -1)
    best = fidelity.largest_items(X[:500] * sign[:, None], np.ones((500, 6), bool), 2)
    assert (explanation.chosen & best).sum() > 0.93 * best.sum()
    assert fidelity.post_hoc_accuracy(explanation).value == 1
    plain = quick(for_class=False).fit(from_the_sum, X).explain(X[:500])
    assert fidelity.post_hoc_accuracy(plain).value < 0.98


def test_the_positions_of_the_choice_do_not_encode_the_class():
    """Any column could encode the class for a predictor trained with the selector; the model reads only the last."""
    model = lambda rows: from_the_sum(np.asarray(rows)[:, 5:])  # noqa: E731
    explanation = quick(1).fit(model, X).explain(X[:500])
    sure = np.abs(X[:500, 5]) > 0.1
    assert explanation.chosen[sure, 5].mean() > 0.99


def test_three_classes_and_other_samplers():
    for options in ({"sampler": "l2x"}, {"random_choices": 1, "temperature": 1.0}):
        explainer = quick(1, **options).fit(largest_of_three, X)
        explanation = explainer.explain(X[:500])
        assert explainer.seen_ == [0, 1, 2]
        assert fidelity.post_hoc_accuracy(explanation).value > 0.85
        assert (explanation.chosen.sum(1) == 1).all()


def test_words(tmp_path):
    explainer = quick(1, masker="words", epochs=5, folder=tmp_path / "run").fit(from_words, TEXTS)
    before = explainer.explain(TEXTS[:100])
    assert fidelity.post_hoc_accuracy(before).value == 1
    explainer.save(tmp_path / "why")
    loaded = SubsetExplainer.load(tmp_path / "why")
    np.testing.assert_array_equal(loaded.explain(TEXTS[:100], from_words).scores, before.scores)
    with pytest.raises(InvalidValueError, match=r"pass predict_proba to SubsetExplainer\.explain"):
        loaded.explain(TEXTS[:100])
    options = {"masker": "words", "epochs": 5, "random_choices": 3, "folder": tmp_path / "run", "resume": True}
    again = quick(1, **options).fit(from_words, TEXTS)
    np.testing.assert_array_equal(again.explain(TEXTS[:100]).scores, before.scores)
    with pytest.raises(RunFolderError, match="other settings: for_class is False, there it was True"):
        quick(1, **options, for_class=False).fit(from_words, TEXTS)


def test_patches_with_one_row_of_a_class():
    """Batch normalisation then has a batch of one row."""
    images = NOISE.rand(12, 8, 8)

    def model(rows):
        p = np.clip(np.asarray(rows)[:, :4, :4].mean((1, 2)), 0.01, 0.99)
        return np.stack([1 - p, p], 1)

    explanation = quick(1, masker="patches", epochs=1, batch_size=3).fit(model, images).explain(images)
    assert (explanation.chosen.sum(1) == 1).all()


def test_each_row_goes_to_the_selector_of_its_class():
    selectors = [nn.Linear(4, 4) for _ in range(3)]
    codes, classes = torch.randn(7, 4), torch.tensor([2, 0, 0, 2, 0, 2, 2])  # none of class 1
    found = SelectorByClass(selectors)(codes, classes)
    for row in range(7):
        torch.testing.assert_close(found[row], selectors[classes[row]](codes[row]))


def test_the_predictor_learns_from_random_choices_alone():
    torch.manual_seed(0)
    module = Explainer(SelectorByClass([ColumnSelector(4, 4) for _ in range(2)]), ColumnPredictor(range(4), 2)).train()
    flags = {"eligible": torch.ones(9, 4, dtype=torch.bool), "forced": torch.zeros(9, 4, dtype=torch.bool)}
    batch = {"codes": torch.randn(9, 4), "classes": torch.arange(9) % 2, "outputs": torch.eye(2)[torch.arange(9) % 2]}
    step = Step(number=0, epoch=0, rows=torch.arange(9), temperature=0.5, generator=torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in module.predictor.state_dict().items()}
    ExplainLoss(2, find_sampler("subset", successive_softmax))(module, batch | flags, step).backward()
    assert all(parameter.grad is None for parameter in module.predictor.parameters())
    assert all(parameter.grad.norm() > 0 for parameter in module.selector.parameters())
    for name, value in module.predictor.state_dict().items():  # the statistics of batches neither
        assert torch.equal(value, before[name])
    assert module.predictor.training
    assert all(parameter.requires_grad for parameter in module.predictor.parameters())


def test_what_was_frozen_before_stays_so():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).eval()
    module[0].requires_grad_(False)
    with frozen(module):
        assert not any(parameter.requires_grad for parameter in module.parameters())
    assert [parameter.requires_grad for parameter in module.parameters()] == [False, False, True, True]
    assert not module.training


def test_networks_of_ones_own():
    selector = nn.Linear(6, 6)
    explainer = quick(selector=selector, epochs=1).fit(from_the_sum, X)
    assert len(explainer.module_.selector.each) == 2
    with pytest.raises(InvalidValueError, match=r"selector must return .* shape \(2, 6\)"):
        quick(selector=nn.Linear(6, 5), epochs=1).fit(from_the_sum, X)


def test_a_class_that_was_never_named_is_told():
    explainer = quick(epochs=1).fit(largest_of_three, X[X[:, :3].argmax(1) < 2])
    assert explainer.seen_ == [0, 1]
    explainer.explain(X[X[:, :3].argmax(1) < 2])
    with pytest.warns(UserWarning, match="predicts class 2, which it predicted for no row of fit") as caught:
        assert (explainer.explain(X).chosen.sum(1) == 2).all()
    assert caught[0].filename == __file__


def test_a_predictor_that_learns_nothing_is_told():
    noise = np.random.RandomState(3)

    def guesses(rows):
        p = noise.rand(len(rows))
        return np.stack([1 - p, p], 1)

    with pytest.warns(UserWarning, match="the predictor hardly knows"):
        quick(epochs=2).fit(guesses, X)


def test_bad_options():
    with pytest.raises(InvalidValueError, match="random_choices must be at least 1, but got 0"):
        quick(random_choices=0).fit(from_the_sum, X)
    with pytest.raises(InvalidTypeError, match="for_class"):
        quick(for_class="yes").fit(from_the_sum, X)
    many = np.tile(X, (2, 1))
    assert quick(epochs=1).fit(from_the_sum, many).random_choices_ == 3
    assert quick(epochs=1, for_class=False).fit(from_the_sum, many).random_choices_ == 0


def test_a_selector_with_batch_normalisation_and_a_rare_class():
    """A batch with one row of a class has no statistics of its own."""

    def rare(rows):
        classes = np.where(np.asarray(rows)[:, 0] > 2, 2, np.asarray(rows)[:, 4] > 0)
        return 0.1 + 0.7 * np.eye(3)[classes]

    selector = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6))
    explainer = quick(1, selector=selector, epochs=3).fit(rare, X)
    assert explainer.seen_ == [0, 1, 2]
    assert not explainer.module_.selector.training
    mixed, alone = explainer.explain(X), [explainer.explain(X[i : i + 1]) for i in range(20)]
    np.testing.assert_allclose(np.concatenate([one.scores for one in alone]), mixed.scores[:20], atol=1e-5)


def test_a_part_of_a_module_that_is_in_evaluation_mode_stays_so():
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train()
    module[1].eval()
    with evaluating(module):
        assert not module[0].training
    assert [part.training for part in module.modules()] == [True, True, False]
