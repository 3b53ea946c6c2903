import numpy as np
import pytest
import torch

from khot.errors import BlackBoxError, InvalidTypeError, InvalidValueError, RunFolderError
from khot.explain import Columns, SubsetExplainer, Words, fidelity
from khot.explain._fitting import answers_to
from khot.explain.black_box import BlackBox
from khot.explain.samplers import random_subsets

NOISE = np.random.RandomState(0)
TWICE = np.repeat(NOISE.randn(600, 1), 2, axis=1)  # both columns say the same


def from_the_sum(rows):
    p = 1 / (1 + np.exp(-2 * np.asarray(rows).sum(1)))
    return np.stack([1 - p, p], 1)


def quick(**options):
    common = {"temperature": 0.5, "epochs": 15, "batch_size": 50, "patience": None, "averaging": None}
    return SubsetExplainer(1, **common | options)


def test_choices_are_random_among_what_may_be_chosen():
    eligible = torch.tensor([[True, True, True, False], [True, False, False, False]]).repeat(500, 1)
    forced = torch.zeros_like(eligible)
    forced[::2, 3] = True
    choices = random_subsets(eligible, forced, 2, draws=3, seed=0)
    assert choices.shape == (1000, 3, 4)
    assert (choices.sum(2) == torch.tensor([2, 1]).repeat(500)[:, None]).all()
    assert choices[::2, :, 3].all()
    shares = choices[::2, :, :3].double().mean((0, 1))  # of 1,500 draws of one of three, to five standard errors
    np.testing.assert_allclose(shares, 1 / 3, atol=5 * np.sqrt(2 / 9 / 1500))


def test_answers_are_those_to_the_parts(tmp_path):
    texts = ["good plot", "bad plot", "good", ""]
    masker = Words(length=2).fit(texts)
    choices = torch.tensor([[[0, 1], [1, 0]], [[0, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [0, 0]]]).bool()
    asked = []

    def model(rows):
        asked.extend(rows)
        p = np.array([0.9 if "good" in text else 0.2 for text in rows])
        return np.stack([1 - p, p], 1)

    found = answers_to(BlackBox(model, 2, tmp_path), masker, texts, choices)
    assert asked == ["plot", "plot", "good", "", "good", "bad", "good", ""]
    torch.testing.assert_close(found[..., 1], torch.tensor([[0.2, 0.9], [0.2, 0.2], [0.9, 0.9], [0.2, 0.2]]))
    answers_to(BlackBox(model, 2, tmp_path), masker, texts, choices)
    assert asked[8:] == ["plot", "plot", "good", "bad"]  # the first few again, to see whether it is the same model


def test_the_predictor_learns_the_answers_to_parts():
    """Each column alone determines the sum of both, but the model sees the mean in the place of the other."""
    off = []
    for draws in (0, 2):
        explainer = quick(random_choices=draws).fit(from_the_sum, TWICE)
        codes, mask = explainer.masker_.encode(TWICE).codes, torch.eye(2)[:1].expand(600, 2)
        with torch.no_grad():
            predicted = explainer.module_.eval().predictor(codes, mask).softmax(1)[:, 1].numpy()
        part = from_the_sum(explainer.masker_.mask(TWICE, mask.bool().numpy()))[:, 1]
        off.append(np.abs(predicted - part).mean())
    assert off[1] < 0.7 * off[0]


def test_the_black_box_is_asked_once_for_each(tmp_path):
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return from_the_sum(rows)

    options = {"epochs": 1, "random_choices": 2, "model_batch_size": 400, "folder": tmp_path}
    first = quick(**options).fit(counted, TWICE)
    assert calls == [400, 200] * 3
    again = quick(**options, resume=True).fit(counted, TWICE)
    assert calls[6:] == [8] * 3
    np.testing.assert_array_equal(first.explain(TWICE).scores, again.explain(TWICE).scores)
    asked = len(calls)
    with pytest.raises(RunFolderError, match="other settings: random_choices is 1, there it was 2"):
        quick(**options | {"random_choices": 1}, resume=True).fit(counted, TWICE)
    assert len(calls) == asked


def test_a_model_that_says_something_else_each_time(tmp_path):
    noise = np.random.RandomState(0)

    def noisy(rows):
        p = np.clip(0.5 + 0.2 * np.asarray(rows)[:, 1] + 0.03 * noise.randn(len(rows)), 0.01, 0.99)
        return np.stack([1 - p, p], 1)

    with pytest.warns(UserWarning, match="no row has more than k = 1 items"):  # so that all draws are the same
        quick(random_choices=3, epochs=1, folder=tmp_path, masker=Columns(groups=[[0, 1]])).fit(noisy, TWICE)
    answers = np.stack([np.load(path) for path in sorted(tmp_path.glob("answers-*/0-256.npy"))])
    assert len(answers) == 4
    assert len(np.unique(answers[:, 0, 0])) == 4


@pytest.mark.parametrize("other", [{"k": 2}, {"random_state": 1}])
def test_other_settings_are_refused_before_the_model_is_asked(other, tmp_path):
    rows, asked = np.random.RandomState(1).randn(60, 3), []

    def counted(rows):
        asked.append(len(rows))
        return from_the_sum(rows)

    common = {"k": 1, "temperature": 0.5, "epochs": 1, "random_choices": 2, "folder": tmp_path}
    SubsetExplainer(**common).fit(counted, rows)
    before = len(asked)
    with pytest.raises(RunFolderError, match=f"other settings: {next(iter(other))} is"):
        SubsetExplainer(**common | other, resume=True).fit(counted, rows)
    assert len(asked) == before


def test_bad_answers_and_bad_numbers():
    with pytest.raises(InvalidValueError, match="random_choices must be at least 0, but got -1"):
        quick(random_choices=-1).fit(from_the_sum, TWICE)
    with pytest.raises(InvalidValueError, match="random_choices must be at most 100, but got 1000"):
        quick(random_choices=1000).fit(from_the_sum, TWICE)

    def fails(rows):
        return from_the_sum(rows) if not (np.asarray(rows) == TWICE.mean(0)).any() else np.full((len(rows), 2), np.nan)

    with pytest.raises(BlackBoxError, match=r"finite .* for rows masked at random \(draw 1\) 0 to"):
        quick(random_choices=1).fit(fails, TWICE)
    quick(epochs=1, random_choices=0).fit(fails, TWICE)


def test_masks_must_keep_the_rows():
    class Loses(Columns):
        def mask(self, X, chosen):  # noqa: N803
            return super().mask(X, chosen)[1:]

    with pytest.raises(InvalidValueError, match="mask must keep the rows, 600, but returned 599"):
        quick(masker=Loses(), random_choices=1).fit(from_the_sum, TWICE)
    with pytest.raises(InvalidValueError, match="mask must keep the rows, 600, but returned 599"):
        fidelity.post_hoc_accuracy_of(from_the_sum, Loses().fit(TWICE), TWICE, np.ones(TWICE.shape, bool))


def test_masks_return_rows_and_change_none():
    class Returns(Columns):
        def mask(self, X, chosen):  # noqa: N803
            return None

    class Changes(Columns):
        def mask(self, X, chosen):  # noqa: N803
            X[~chosen] = 0
            return X

    with pytest.raises(InvalidTypeError, match="mask must return rows, but returned None"):
        quick(masker=Returns(), random_choices=1).fit(from_the_sum, TWICE)
    before = TWICE.copy()
    with pytest.raises(ValueError, match="read-only"):
        quick(masker=Changes(), random_choices=1).fit(from_the_sum, TWICE)
    np.testing.assert_array_equal(TWICE, before)


def test_a_training_of_other_items_is_not_resumed(tmp_path):
    rows = np.random.RandomState(1).randn(60, 3)
    first, other = ({"epochs": 1, "masker": Columns(groups=groups)} for groups in ([[0, 1], [2]], [[0], [1, 2]]))
    quick(**first, folder=tmp_path).fit(from_the_sum, rows)
    quick(**first, folder=tmp_path, resume=True).fit(from_the_sum, rows)
    with pytest.raises(RunFolderError, match="other settings: masker is 'Columns"):
        quick(**other, folder=tmp_path, resume=True).fit(from_the_sum, rows)
