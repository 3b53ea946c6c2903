"""Trainings that stop, diverge or are resumed, and the answers that they keep."""

from contextlib import suppress

import numpy as np
import pytest
import torch

from khot.errors import BlackBoxError, DivergedError, KhotError
from khot.explain import SubsetExplainer, Words
from khot.explain.black_box import BlackBox
from tests.explain.problems import X, from_last_column, from_words, quick


def test_a_stopped_training_goes_on(tmp_path):
    whole = quick(epochs=2, folder=tmp_path / "a").fit(from_last_column, X)
    again = quick(epochs=2, folder=tmp_path / "a", resume=True).fit(from_last_column, X)
    for name, value in whole.module_.state_dict().items():
        assert torch.equal(value, again.module_.state_dict()[name])


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
