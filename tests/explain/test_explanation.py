import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch

from khot.errors import InvalidTypeError, InvalidValueError, KhotError, ModelFileError
from khot.explain import Columns, Explanation, Sentences, Words, fidelity
from khot.explain.maskers import Masker

TEXTS = ["A <b>great</b> film.", "Dull."]


@pytest.fixture
def explanation() -> Explanation:
    masker = Words(length=5).fit(TEXTS)
    chosen = np.array([[False, False, True, False, True], [True, False, False, False, False]])
    scores = np.array([[0, 1, 3, 1, 2], [5, -np.inf, -np.inf, -np.inf, -np.inf]], dtype=np.float32)
    full = np.array([[0.1, 0.9], [0.8, 0.2]], dtype=np.float32)
    masked = np.array([[0.3, 0.7], [0.4, 0.6]], dtype=np.float32)
    return Explanation(masker, TEXTS, chosen, scores, full, masked)


def test_items_and_records(explanation: Explanation):
    assert explanation.items == [["great", "film"], ["Dull"]]
    assert explanation.to_records() == [
        {"row": 0, "rank": 1, "item": 2, "text": "great", "score": 3.0},
        {"row": 0, "rank": 2, "item": 4, "text": "film", "score": 2.0},
        {"row": 1, "rank": 1, "item": 0, "text": "Dull", "score": 5.0},
    ]


def test_rows_with_names(explanation: Explanation):
    named = replace(explanation, row_names=["r7", 9])
    assert [record["row"] for record in named.to_records()] == ["r7", "r7", 9]
    assert [row["row"] for row in json.loads(named.to_json())] == ["r7", 9]
    assert str(named).startswith("row r7, class 1")
    assert "row 9, class 0" in named._repr_html_()


def test_json_can_be_read_back(explanation: Explanation, tmp_path: Path):
    text = explanation.to_json(tmp_path / "why.json")
    assert json.loads(text) == json.loads((tmp_path / "why.json").read_text())
    first = json.loads(text)[0]
    assert [item["text"] for item in first["items"]] == ["great", "film"]
    assert first["full"] == pytest.approx([0.1, 0.9])
    assert first["masked"] == pytest.approx([0.3, 0.7])


@pytest.mark.parametrize(
    ("masker", "beyond"),
    [
        (Words(length=2), '<span class="beyond" title="beyond what can be chosen">Not a </span><mark'),
        (Sentences(sentences=1, vocabulary=9), '</mark><span class="beyond" title="beyond what can be chosen"> Or is'),
    ],
)
def test_the_page_shows_what_could_not_be_chosen(masker: Masker, beyond: str):
    text = "Not a good film. Or is it?"[: 15 if isinstance(masker, Words) else None]
    items = masker.fit([text]).encode([text])
    chosen = items.present.numpy()
    assert beyond in Explanation(masker, [text], chosen, np.zeros(chosen.shape, np.float32))._repr_html_()


def test_the_page_marks_the_chosen_words_and_escapes_the_rest(explanation: Explanation, tmp_path: Path):
    explanation.to_html(tmp_path / "why.html", title="Why <it>?")
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    strong, weak = (f'<mark style="background: rgb(255 205 80 / {share}%)" title="score' for share in (100, 65))
    marks = f'{strong} 3">great</mark>&lt;/b&gt; {weak} 2">film</mark>.'
    assert f"&lt;b&gt;{marks}" in page
    assert "row 0, class 1: 0.900 on the whole, 0.700 on the chosen items<" in page
    assert "row 1, class 0: 0.800 on the whole, 0.400 on the chosen items, with class 1 at 0.600" in page
    assert "the same class from the chosen items alone in 50.0% of 2 rows" in page
    assert "Why &lt;it&gt;?" in page
    assert "://" not in page
    assert ">Dull</mark>" in explanation._repr_html_()


def test_the_terminal_shows_brackets(explanation: Explanation):
    assert str(explanation).splitlines()[:2] == [
        "row 0, class 1: 0.900 on the whole, 0.700 on the chosen items",
        "A <b>[great]</b> [film].",
    ]


def test_columns_are_separated():
    masker = Columns().fit(np.array([[1.0, 2.0], [3.0, 4.0]]))
    chosen = np.array([[True, False]])
    explanation = Explanation(masker, np.array([[1.0, 2.0]]), chosen, np.zeros((1, 2), np.float32))
    assert str(explanation) == "row 0\n[0 = 1] · 1 = 2"
    assert repr(explanation) == "Explanation(1 rows, 1 items chosen)"


def test_classes_have_names(explanation: Explanation):
    named = replace(explanation, class_names=["bad", "good"])
    assert str(named).splitlines()[0] == "row 0, good: 0.900 on the whole, 0.700 on the chosen items"


def test_a_frame_of_the_records(explanation: Explanation):
    frame = explanation.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["text"].tolist() == ["great", "film", "Dull"]


def test_post_hoc_accuracy_counts_equal_classes(explanation: Explanation):
    share = fidelity.post_hoc_accuracy(explanation)
    assert share.value == 0.5
    assert 0 <= share.low < 0.5 < share.high <= 1
    silent = Explanation(explanation.masker, TEXTS, explanation.chosen, explanation.scores)
    for measure in (fidelity.post_hoc_accuracy, fidelity.leakage):
        with pytest.raises(InvalidValueError, match="no outputs"):
            measure(silent)


def test_other_choices_are_measured_in_the_same_way(explanation: Explanation):
    def says_great(rows):
        p = np.array([0.9 if "great" in text else 0.1 for text in rows])
        return np.stack([1 - p, p], 1)

    nothing = np.zeros((2, 5), bool)
    assert fidelity.post_hoc_accuracy_of(says_great, explanation.masker, TEXTS, nothing).value == 0.5
    assert fidelity.post_hoc_accuracy_of(says_great, explanation.masker, TEXTS, explanation.chosen).value == 1.0


def test_random_and_largest_items():
    present = np.array([[True] * 6, [True, True, False, False, False, False]])
    chosen = fidelity.random_items(np.repeat(present, 2000, 0), k=3, random_state=0)
    assert (chosen.sum(1) == np.repeat([3, 2], 2000)).all()
    np.testing.assert_allclose(chosen[:2000].mean(0), 0.5, atol=0.05)
    scores = np.array([[1.0, 3, 2, 3, 0, 0]] * 2)
    np.testing.assert_array_equal(fidelity.largest_items(scores, present, 2)[0], [0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(fidelity.largest_items(scores, present, 4)[1], present[1])


def test_stability_is_the_overlap(explanation: Explanation):
    other = np.array([[False, True, True, False, False], [True, False, False, False, False]])
    second = Explanation(explanation.masker, TEXTS, other, explanation.scores)
    assert fidelity.stability([explanation, explanation]) == 1.0
    assert fidelity.stability([explanation, second]) == pytest.approx((1 / 2 + 1) / 2)
    with pytest.raises(InvalidValueError, match="at least two"):
        fidelity.stability([explanation])


def test_a_choice_that_tells_the_class_leaks():
    noise = np.random.RandomState(0)
    label = noise.rand(400) < 0.5
    full = np.stack([1 - label, label], 1).astype(np.float32)
    masker, rows = Columns(), np.zeros((400, 4))
    code = np.stack([label, ~label, np.zeros(400, bool), np.zeros(400, bool)], 1)
    fair = np.eye(4, dtype=bool)[noise.randint(4, size=400)]
    scores = np.zeros((400, 4), np.float32)
    cheat, honest = (fidelity.leakage(Explanation(masker, rows, mask, scores, full, full)) for mask in (code, fair))
    assert cheat.accuracy > 0.99
    assert honest.accuracy < honest.majority + 0.08


def test_gradients_without_and_with_an_embedding():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    rows = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    wanted = []
    for row in rows:
        change = torch.autograd.functional.jacobian(lambda x: model(x).log_softmax(0).max(), row)
        wanted.append(change.abs())
    np.testing.assert_allclose(fidelity.gradient_norms(model, rows), torch.stack(wanted), rtol=1e-5)
    embedding = torch.nn.Embedding(9, 3)
    text = torch.nn.Sequential(embedding, torch.nn.Flatten(), torch.nn.Linear(6, 2))
    norms = fidelity.gradient_norms(text, torch.tensor([[1, 2], [3, 3]]), embedding)
    weights = text[2].weight.detach().numpy()
    ratio = np.linalg.norm((weights[1] - weights[0]).reshape(2, 3), axis=1)
    np.testing.assert_allclose(norms[:, 0] / norms[:, 1], [ratio[0] / ratio[1]] * 2, rtol=1e-5)
    with pytest.raises(InvalidValueError, match="used once by model, but was 0 times"):
        fidelity.gradient_norms(text, torch.tensor([[1, 2]]), torch.nn.Embedding(2, 2))


def test_gradients_of_a_frozen_model_and_of_whole_numbers():
    embedding = torch.nn.Embedding(9, 3)
    model = torch.nn.Sequential(embedding, torch.nn.Flatten(), torch.nn.Linear(6, 2)).requires_grad_(False)
    assert (fidelity.gradient_norms(model, torch.tensor([[1, 2]]), embedding) > 0).all()
    with pytest.raises(KhotError, match="layer must be the model's embedding for tokens of torch"):
        fidelity.gradient_norms(model, torch.tensor([[1, 2]]))


def test_the_old_name_of_the_seed():
    present = np.ones((20, 3), dtype=bool)
    with pytest.warns(FutureWarning, match="seed is now called random_state"):
        old = fidelity.random_items(present, 1, seed=3)  # pyright: ignore[reportCallIssue]
    np.testing.assert_array_equal(old, fidelity.random_items(present, 1, random_state=3))


def test_bad_choices():
    present = np.ones((2, 3), dtype=bool)
    with pytest.raises(InvalidValueError, match="random_state must be at least 0"):
        fidelity.random_items(present, 1, random_state=-1)
    with pytest.raises(InvalidValueError, match=r"same shape \(rows, items\), but got \(3,\) and \(2, 3\)"):
        fidelity.largest_items(np.zeros(3), present, 1)
    with pytest.raises(InvalidValueError, match=r"shape \(4, items\), but got bool of shape \(2, 3\)"):
        fidelity.post_hoc_accuracy_of(lambda rows: rows, Columns(), np.zeros((4, 3)), present)
    with pytest.raises(InvalidValueError, match=r"shape \(2, items\), but got int64 of shape \(2, 3\)"):
        fidelity.post_hoc_accuracy_of(lambda rows: rows, Columns(), np.zeros((2, 3)), np.zeros((2, 3), np.int64))
    with pytest.raises(InvalidTypeError, match="pass a list of them"):
        fidelity.stability([1, 2])  # pyright: ignore[reportArgumentType]


def test_a_share_lies_in_its_interval():
    for flags in ([True] * 1280, [False] * 1280, [True] * 3):
        share = fidelity.Share.of(np.array(flags))
        assert share.low <= share.value <= share.high


def test_random_items_for_comparison():
    rows = np.random.RandomState(0).randn(400, 4)

    def of_the_first(X):  # noqa: N803
        p = (X[:, 0] > 0) * 1.0
        return np.stack([1 - p, p], 1)

    chosen = np.tile([True, False, False, False], (400, 1))
    outputs = of_the_first(rows)
    explanation = Explanation(Columns().fit(rows), rows, chosen, chosen * 1.0, outputs, outputs)
    share = fidelity.random_accuracy(explanation, of_the_first)
    assert fidelity.post_hoc_accuracy(explanation).value == 1
    assert 0.5 < share.value < 0.75  # right where the first is drawn, and in half of the other rows


def test_random_items_are_as_many_in_each_row_of_those_that_may_be_chosen():
    rows = np.random.RandomState(0).randn(300, 4)
    chosen = np.array([[True, False, False, False], [True, True, False, True]])[np.arange(300) % 2]
    eligible = np.array([[True, True, False, False], [True, True, True, False]])[np.arange(300) % 2]  # the last forced
    asked = []

    def notes(X):  # noqa: N803
        asked.append(np.isin(X, rows))
        return np.full((len(X), 2), 0.5)

    outputs = np.full((300, 2), 0.5)
    masker = Columns().fit(rows)
    explanation = Explanation(masker, rows, chosen, np.zeros((300, 4)), outputs, outputs, eligible=eligible)
    fidelity.random_accuracy(explanation, notes)
    left = np.concatenate(asked)
    assert np.array_equal(left.sum(1), chosen.sum(1))
    assert not left[::2, 2:].any()
    assert left[1::2, 3].all()
    assert (left[::2, :2].mean(0) > 0.3).all()
    assert (left[1::2, :3].mean(0) < 0.8).all()


def test_the_largest_items_are_present_ones():
    scores = np.array([[-np.inf, -np.inf, np.nan], [0, 5, 3]])
    present = np.array([[False, True, True], [True, True, False]])
    assert fidelity.largest_items(scores, present, 1).tolist() == [[False, True, False], [False, True, False]]
    assert fidelity.largest_items(scores[1:].astype(np.uint8), present[1:], 1).tolist() == [[False, True, False]]


def test_rare_classes_do_not_hide_a_leak():
    classes = np.repeat([0, 1, 2], [50, 47, 3])
    chosen = np.stack([classes == 0, classes != 0], 1)
    explanation = Explanation(Columns(), chosen, chosen, chosen * 1.0, np.eye(3)[classes], np.eye(3)[classes])
    found = fidelity.leakage(explanation)
    assert (found.accuracy, found.majority) == (1.0, 50 / 97)
    with pytest.raises(InvalidValueError, match="a class with at least 60 rows, but the largest has 50"):
        fidelity.leakage(explanation, folds=60)


def test_shares_stay_between_0_and_1():
    assert fidelity.Share.of(np.zeros(7, bool)).low == 0
    assert fidelity.Share.of(np.ones(7, bool)).high == 1
    with pytest.raises(InvalidValueError, match="at least one row"):
        fidelity.Share.of(np.zeros(0, bool))


def test_a_failed_save_keeps_what_is_there(tmp_path: Path):
    from khot._estimators.storage import EXPLAINER, read_parts, write_parts

    write_parts(tmp_path, EXPLAINER, {"k": 1}, {"a": torch.zeros(2)})
    with pytest.raises(ModelFileError, match="cannot be saved"):
        write_parts(tmp_path, EXPLAINER, {"k": np.float32(1)}, {"a": torch.ones(2)})
    assert read_parts(tmp_path, EXPLAINER)[1]["a"].tolist() == [0, 0]
