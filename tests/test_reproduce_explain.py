import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import khot
from khot.datasets import Dataset, Rows
from khot.errors import InvalidValueError
from khot.experiments import explain

GOOD, BAD, REST = ["great", "fine"], ["dull", "poor"], ["plot", "film", "scene", "actor", "music"]


def _reviews(count: int, seed: int) -> Rows:
    noise = np.random.RandomState(seed)
    labels = noise.randint(2, size=count)
    texts = []
    for label in labels:
        words = [*noise.choice(REST, noise.randint(0, 12)), *noise.choice(GOOD if label else BAD, 2)]
        noise.shuffle(words)
        half = len(words) // 2
        texts.append(" ".join(words[:half]) + ". " + " ".join(words[half:]) + "!")
    return Rows(np.array(texts, object), labels.astype(np.int64), np.arange(count))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch):
    data = Dataset("imdb", _reviews(400, 0), _reviews(100, 1), ("negative", "positive"), "nowhere")
    monkeypatch.setattr(explain.datasets, "load", lambda name: data)
    for name, task in explain.TASKS.items():
        small = replace(task, k=min(task.k, 2), vocabulary=20, length=20, epochs=2, search_epochs=1)
        monkeypatch.setitem(explain.TASKS, name, small)
    monkeypatch.setattr(explain, "QUICK", {"reviews": 60, "epochs": 1, "search_epochs": 1})
    monkeypatch.setattr("khot.explain._fitting.TEMPERATURES", (0.5, 5.0))


@pytest.mark.parametrize("task", ["imdb-word", pytest.param("imdb-sent", marks=pytest.mark.slow)])
def test_a_row_of_the_table_and_the_page(task: str, tmp_path: Path):
    rows = [explain.run(task, method, "full", (0, 1), tmp_path / "runs") for method in ("subset", "l2x")]
    for row in rows:
        assert row.interval[0] <= row.post_hoc_accuracy <= row.interval[1]
        assert row.post_hoc_accuracy == pytest.approx(np.mean(row.by_seed), abs=0.01)
        assert str(row.temperature) in {"0.5", "5.0"}
        assert len(row.shown) == explain.SHOWN
        assert 0 < row.stability <= 100
        assert row.references.keys() == {"random", "gradient"}
    ours, theirs = rows
    assert ours.fewer_than_k == 0
    assert (theirs.fewer_than_k > 0) == (explain.TASKS[task].k > 1)
    shortest = ours.shown[0]
    assert len(shortest.chosen) == min(explain.TASKS[task].k, len(shortest.items))
    out = tmp_path / "out"
    out.mkdir()
    assert explain.write(ours, out) == [out / f"explain-{task}-subset.json"]
    assert explain.write(theirs, out)[1] == out / f"explain-{task}.html"
    assert explain.results(out) == json_equal(rows)
    page = (out / f"explain-{task}.html").read_text(encoding="utf-8")
    assert page.count("<td>") == 2 * explain.SHOWN
    assert page.count("<mark>") == sum(len(shown.chosen) for row in rows for shown in row.shown)
    assert f"{ours.post_hoc_accuracy:.2f}" in explain.table(rows)


def test_words_that_speak_for_the_class(tmp_path: Path):
    row = explain.run("imdb-word", "subset-for-class", "full", (0,), tmp_path / "runs")
    assert row.post_hoc_accuracy > 95
    assert row.paper_accuracy is None
    assert row.stability is None
    assert row.settings["random_choices"] == 3  # what it was trained with, though the task names none
    assert explain.write(row, tmp_path) == [tmp_path / "explain-imdb-word-subset-for-class.json"]


def json_equal(rows: list[explain.Result]) -> list[explain.Result]:
    """The rows as they are after JSON."""
    return [explain.Result(**json.loads(json.dumps(vars(row) | {"shown": []})) | {"shown": row.shown}) for row in rows]


def test_noise_of_the_wrong_sign_has_the_same_keys_mirrored():
    logits = torch.tensor([[0.0, 1.0, -torch.inf, 2.0]])
    keys = khot.gumbel_keys(logits, torch.Generator().manual_seed(0))
    wanted = khot.successive_softmax(torch.where(logits.isinf(), logits, logits - (keys - logits)), 2, 0.7)
    torch.testing.assert_close(explain.reversed_noise(logits, 2, 0.7, torch.Generator().manual_seed(0)), wanted)


@pytest.mark.parametrize("task", explain.TASKS)
def test_gradients_are_those_of_the_words_or_sentences(task: str):
    torch.manual_seed(0)
    network = explain.TASKS[task].black_box().eval()
    tokens = np.zeros((600, 3) if task == "imdb-word" else (600, 3, 4), np.int64)
    tokens[::2, 1], tokens[-1, 2] = 5, 7
    scores = explain._black_boxes.gradient_scores(network, tokens)
    assert scores.shape == (600, 3)
    if task == "imdb-sent":
        assert (scores[::2] > 0).tolist() == [[False, True, False]] * 300
        assert (scores[-1] > 0).tolist() == [False, False, True]
    once = explain._black_boxes.gradient_scores(network, tokens[-1:])
    np.testing.assert_allclose(scores[-1:], once, rtol=1e-4)


@pytest.mark.slow
def test_the_quick_profile_takes_some_reviews_and_has_files_of_its_own(tmp_path: Path):
    rows = [explain.run("imdb-word", method, "quick", (0,), tmp_path / "runs") for method in ("subset", "l2x")]
    for row in rows:
        assert row.profile == "quick"
        assert row.settings["reviews"] == 60
        assert row.settings["random_choices"] == 0  # as with all reviews, though these are few
        assert row.paper_accuracy is None
        assert max(shown.row for shown in row.shown) < 60
    full = explain.run("imdb-word", "subset", "full", (0,), tmp_path / "runs")
    assert full.settings["reviews"] is None
    written = {path.name for row in (full, *rows) for path in explain.write(row, tmp_path)}
    names = ("subset.json", "quick-subset.json", "quick-l2x.json", "quick.html")
    assert written == {f"explain-imdb-word-{name}" for name in names}
    assert [row.label for row in explain.results(tmp_path)] == ["imdb-word", "imdb-word-quick", "imdb-word-quick"]
    assert "imdb-word-quick" in explain.table(rows)


def test_bad_options(tmp_path: Path):
    for options in (("imdb", "subset", "full"), ("imdb-word", "lime", "full"), ("imdb-word", "subset", "long")):
        with pytest.raises(InvalidValueError, match="must be one of"):
            explain.run(*options, (0,), tmp_path)
