import json
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from khot.errors import BlackBoxError, DivergedError, KhotError
from khot.explain import SubsetExplainer, Words, fidelity
from khot.explain.black_box import BlackBox

NOISE = np.random.RandomState(0)
X = NOISE.randn(600, 5)
WORDS = np.array(["plot", "actor", "scene", "music", "dull", "great", "fine", "poor"])
TEXTS = [  # one word decides, wherever it stands
    " ".join(NOISE.permutation([*NOISE.choice(WORDS[:4], NOISE.randint(1, 9)), word]))
    for word in NOISE.choice(WORDS[4:], 600)
]


def from_last_column(rows):
    p = 1 / (1 + np.exp(-6 * np.asarray(rows)[:, 4]))
    return np.stack([1 - p, p], 1)


def from_words(rows):
    good = np.array([("great" in text) + ("fine" in text) - ("dull" in text) - ("poor" in text) for text in rows])
    p = 1 / (1 + np.exp(-3.0 * good))
    return np.stack([1 - p, p], 1)


def _in_the_middle(rows):
    if rows[0, 0] == X[256, 0]:
        raise ConnectionError("timed out")
    return from_last_column(rows)


class _One(nn.Module):
    def forward(self, codes, mask):
        return (codes * mask)[:, :1]


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

    before = selector.weight.clone()
    explainer = quick(selector=selector, predictor=Predictor(), epochs=3).fit(from_last_column, X)
    assert torch.equal(selector.weight, before)
    assert not torch.equal(explainer.module_.selector.weight, before)
    assert explainer.explain(X[:3]).chosen.sum() == 3
    no_parameters = quick(selector=nn.Identity(), predictor=Predictor(), epochs=1).fit(from_last_column, X)
    assert no_parameters.explain(X[:3]).chosen.argmax(1).tolist() == X[:3].argmax(1).tolist()


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
    for bad in (lambda rows: rows, _in_the_middle):
        with pytest.raises(BlackBoxError):
            explainer.fit(bad, X)
        np.testing.assert_array_equal(explainer.explain(X[:5]).scores, before)
    masker = Words(length=12)
    first = quick(masker=masker, epochs=1).fit(from_words, TEXTS)
    scores = first.explain(TEXTS[:5]).scores
    quick(masker=masker, epochs=1).fit(from_words, ["other words", "great words"] * 50)
    np.testing.assert_array_equal(first.explain(TEXTS[:5]).scores, scores)


def test_the_black_box_gets_rows_of_its_own():
    def spoils(rows):
        answer = from_last_column(rows)
        rows[:] = 0
        return answer

    rows = X.copy()
    explainer = quick(epochs=1).fit(spoils, rows)
    explainer.explain(rows[:9])
    np.testing.assert_array_equal(rows, X)


def test_answers_are_kept_for_a_resumed_fit(tmp_path):
    calls = []

    def counted(rows):
        calls.append(len(rows))
        if len(calls) == 3:
            raise ConnectionError
        return from_last_column(rows)

    with pytest.raises(BlackBoxError):
        quick(epochs=1, random_choices=0, folder=tmp_path).fit(counted, X)
    with pytest.raises(KhotError, match="holds a run already"):
        quick(epochs=1, random_choices=0, folder=tmp_path).fit(counted, X)
    resumed = quick(epochs=1, random_choices=0, folder=tmp_path, resume=True).fit(counted, X)
    assert calls == [256, 256, 88, 8, 88]  # the first few again, to see whether it is the same model
    np.testing.assert_array_equal(
        resumed.explain(X[:5]).scores,
        quick(epochs=1, random_choices=0).fit(from_last_column, X).explain(X[:5]).scores,
    )
    with pytest.raises(KhotError, match="other settings"):
        quick(epochs=1, random_choices=0, folder=tmp_path, resume=True).fit(from_last_column, -X)
    with pytest.raises(KhotError, match="holds the answers of another model"):
        quick(epochs=1, random_choices=0, folder=tmp_path, resume=True).fit(lambda rows: from_last_column(-rows), X)
    for path in tmp_path.glob("answers-*/256-512.npy"):
        path.write_bytes(path.read_bytes()[:200])
    calls.clear()
    quick(epochs=1, random_choices=0, folder=tmp_path, resume=True).fit(
        lambda rows: (calls.append(len(rows)), from_last_column(rows))[1], X
    )
    assert calls == [8, 256]  # what was damaged is asked again


def test_answers_are_kept_to_the_bit(tmp_path):
    """To divide rows by their sums a second time would change their last bits."""
    answers = np.random.RandomState(0).dirichlet(np.ones(3), 600).astype(np.float32)
    first, again = (BlackBox(lambda rows: answers[: len(rows)], 600, cache=tmp_path).ask(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first / first.sum(1, keepdims=True) != first).any()


def test_answers_about_other_texts_are_not_taken(tmp_path):
    """Their codes are the same: numbers of words in the order of their frequency."""
    options = {"masker": Words(length=3), "epochs": 1, "random_choices": 0, "folder": tmp_path}
    asked = []
    for word, resume in (("good", False), ("poor", True)):
        texts = [f"{word}{i} film" for i in range(60)]
        with suppress(KhotError):  # the training itself is another one, too
            quick(**options, resume=resume).fit(
                lambda rows: (asked.append((rows[0], len(rows))), from_words(rows))[1], texts
            )
    assert asked == [("good0 film", 60), ("poor0 film", 60)]


def test_interrupted_trainings_name_the_folder_to_resume(tmp_path, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt("in a folder of its own")

    monkeypatch.setattr("khot.explain._fitting.fit", stopped)
    with pytest.raises(KeyboardInterrupt, match=f"train again with the folder '{tmp_path}'"):
        quick(folder=tmp_path).fit(from_last_column, X)
    with pytest.raises(KeyboardInterrupt, match="nothing was kept"):
        quick().fit(from_last_column, X)


def test_a_temperature_that_diverges_is_not_chosen(tmp_path, monkeypatch):
    from khot.explain import _fitting as module

    def some(network, loss, rows, settings, **options):
        if settings.temperature != 2.0:
            raise DivergedError("so it goes")
        return fit(network, loss, rows, settings, **options)

    fit = module.fit
    monkeypatch.setattr(module, "fit", some)
    explainer = quick(temperature="search", search_epochs=1, epochs=1).fit(from_last_column, X)
    assert explainer.temperature_ == 2.0
    explainer.save(tmp_path)
    assert SubsetExplainer.load(tmp_path).search_ == explainer.search_
    monkeypatch.undo()
    with pytest.raises(DivergedError):
        quick(learning_rate=1e30).fit(from_last_column, X)


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


def test_verbose_prints_the_losses(capsys):
    quick(epochs=2, verbose=True).fit(from_last_column, X)
    printed = capsys.readouterr().out
    assert printed.startswith("temperature ")
    assert "epoch 2 of 2" in printed


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
