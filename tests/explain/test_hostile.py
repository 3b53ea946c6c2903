"""Rows, models, networks and folders that do harm, or that came to it."""

import warnings
from collections import deque

import numpy as np
import pyarrow
import pytest
import torch
from torch import nn

from khot.errors import (
    BlackBoxError,
    DivergedError,
    InvalidTypeError,
    InvalidValueError,
    KhotError,
    ModelFileError,
    RunFolderError,
)
from khot.explain import Columns, Patches, SubsetExplainer, Tokens, fidelity
from khot.explain._module import rows_at_once
from khot.explain.maskers import Items
from khot.topk import hard_topk
from tests.explain.problems import TEXTS, X, from_last_column, quick

FEW = X[:60]


def fitted(model=from_last_column, rows=FEW, **options):
    return quick(**{"k": 1, "epochs": 1} | options).fit(model, rows)


def test_answers_about_rows_in_other_units_are_not_taken_for_those_about_these(tmp_path):
    asked = []

    def counted(rows):
        asked.append(len(rows))
        return from_last_column(rows)

    fitted(counted, folder=tmp_path, random_choices=0)
    for other in (FEW * 2.54, FEW + 0.7):
        asked.clear()
        with pytest.raises(RunFolderError, match="other settings"):
            fitted(counted, other, folder=tmp_path, resume=True, random_choices=0)
        assert sum(asked) == len(FEW)


@pytest.mark.parametrize(
    "make", [list, lambda rows: [row.tolist() for row in rows], lambda rows: list(torch.tensor(rows))]
)
def test_a_model_may_change_what_it_is_given(make):
    rows = make(FEW.copy())

    def careless(given):
        answer = from_last_column(given if not isinstance(given[0], torch.Tensor) else torch.stack(given))
        for row in given:
            row[:] = row[:] * 0 if not isinstance(row, list) else [0.0] * len(row)
        return answer

    fitted(careless, rows)
    np.testing.assert_array_equal(np.asarray([np.asarray(row) for row in rows]), FEW)


def test_a_table_of_pyarrow():
    table = pyarrow.table({f"c{i}": column for i, column in enumerate(FEW.T)})
    explanation = fitted(lambda rows: from_last_column(np.column_stack([c.to_numpy() for c in rows.columns])), table)
    assert explanation.explain(table).items[0][0].startswith("c")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ma.masked_array(FEW, mask=FEW > 1), "some are masked"),
        ([[10**400, 1], [1, 2]] * 5, "a table must consist of numbers"),
        (set(TEXTS), "pass an array, a data frame, a tensor or a list"),
        (deque(TEXTS), "pass an array, a data frame, a tensor or a list"),
        (np.zeros((5, 0)), "at least one of each"),
    ],
)
def test_rows_that_cannot_be_used(rows, message):
    with pytest.raises(KhotError, match=message):
        fitted(rows=rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"masker": Columns(names="abcde")}, "names must be a list"),
        ({"masker": Columns(names=["a", "a", "b", "c", "d"])}, "several are called 'a'"),
        ({"masker": Columns(groups=5)}, "groups must be lists"),  # pyright: ignore[reportArgumentType]
        ({"temperature": np.array([1.0, 2.0])}, "temperature must be"),
        ({"selector": lambda codes: codes}, "selector must be a torch.nn.Module"),
    ],
)
def test_parameters_that_cannot_be_used(options, message):
    with pytest.raises(KhotError, match=message):
        fitted(**options)


def test_flags_in_any_memory():
    flags = np.array([True, True, False, False, False])
    kept = flags[::-1]
    kept.flags.writeable = False
    explainer = fitted(k=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = explainer.explain(FEW, eligible=kept)
    assert not explanation.chosen[:, :3].any()
    with pytest.raises(InvalidTypeError, match="eligible must be rows of one shape"):
        fitted(k=1).explain(FEW, eligible=[[True], [True, False]])


class _Own:
    """A masker of the columns that does one thing wrong."""

    def __init__(self, encoded=None):
        self.encoded, self.inner = encoded, Columns()

    def fit(self, rows):
        self.inner.fit(rows)
        return self

    def encode(self, rows):
        return self.inner.encode(rows) if self.encoded is None else self.encoded(self.inner.encode(rows))

    def mask(self, rows, chosen):
        return self.inner.mask(rows, chosen)

    def pieces(self, row):
        return self.inner.pieces(row)


def test_a_masker_without_networks():
    with pytest.raises(InvalidTypeError, match="has no method selector"):
        fitted(masker=_Own())
    given = {"selector": nn.Linear(5, 5), "predictor": Columns().fit(FEW).predictor(2)}
    assert fitted(masker=_Own(), **given).explain(FEW).chosen.sum() == len(FEW)


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (lambda items: None, "must encode rows as Items"),
        (lambda items: Items(items.codes, items.present[:, 0]), r"torch.bool of shape \(60,\)"),
        (lambda items: Items(items.codes, items.present[:-1]), r"shape \(59, 5\)"),
    ],
)
def test_a_masker_that_encodes_badly(encoded, message):
    with pytest.raises(KhotError, match=message):
        fitted(masker=_Own(encoded), selector=nn.Linear(5, 5), predictor=Columns().fit(FEW).predictor(2))


@pytest.mark.parametrize("damage", [b"PK", b"nothing", b""])
def test_damaged_answers_are_asked_for_again(tmp_path, damage):
    first = fitted(folder=tmp_path)
    (answers,) = tmp_path.glob("answers-0-*/*.npy")
    answers.write_bytes(damage)
    again = fitted(folder=tmp_path, resume=True)
    np.testing.assert_array_equal(again.explain(FEW).scores, first.explain(FEW).scores)
    np.save(answers, np.full((60, 3), 7.0))
    fitted(folder=tmp_path, resume=True)


def test_what_is_wrong_with_the_classes_is_told_after_one_call():
    asked = []

    def counted(rows):
        asked.append(len(rows))
        return from_last_column(rows)

    with pytest.raises(InvalidValueError, match="class_names must name the 2 classes"):
        fitted(counted, class_names=["only"], model_batch_size=10)
    assert asked == [10]


def test_folders_that_hold_other_things(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(RunFolderError, match="holds other things than a run"):
            fitted(folder=tmp_path, resume=resume)
    with pytest.raises(RunFolderError, match="is a file"):
        fitted(folder=tmp_path / "notes.txt")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tensors.safetensors").write_bytes(b"mine")
    with pytest.raises(ModelFileError, match="holds other things than an explainer"):
        fitted().save(tmp_path / "other")
    assert (tmp_path / "other" / "tensors.safetensors").read_bytes() == b"mine"


def test_the_folder_of_a_run_may_begin_with_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    fitted(folder="~/run")
    assert {path.name.split("-")[0] for path in (tmp_path / "run").iterdir()} == {"answers", "training"}
    assert not (tmp_path / "~").exists()


def test_messages_of_models_are_one_line():
    def broken(rows):
        raise ValueError("first\nsecond")

    with pytest.raises(KhotError, match="first second") as found:
        fitted(broken)
    assert "\n" not in str(found.value)


def test_modules_are_checked_before_the_folder_is_read(tmp_path):
    fitted().save(tmp_path)
    with pytest.raises(InvalidTypeError, match=r"selector must be a torch\.nn\.Module"):
        SubsetExplainer.load(tmp_path, selector="x")  # pyright: ignore[reportArgumentType]


def test_large_rows_are_looked_at_a_few_at_a_time():
    assert rows_at_once(torch.zeros(3, 400)) == 512
    assert rows_at_once(torch.empty(2, 3, 224, 224, device="meta")) == 6


def test_numbers_that_would_fill_the_memory():
    with pytest.raises(InvalidValueError, match="tokens must be at most"):
        Tokens().fit(np.array([[10**7, 1]]))
    with pytest.raises(InvalidValueError, match="size must be at most that of the images"):
        Patches(10**12).fit(np.zeros((2, 8, 8)))


def test_patches_of_each_image_are_its_own():
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    digits = load_digits()
    images, rows = digits.images[:1200], digits.images[1200:]
    model = LogisticRegression(max_iter=200).fit(images.reshape(-1, 64), digits.target[:1200])
    explainer = SubsetExplainer(4, masker=Patches(2), temperature=5.0, epochs=8)
    explanation = explainer.fit(lambda x: model.predict_proba(x.reshape(-1, 64)), images).explain(rows)
    assert len(np.unique(explanation.chosen, axis=0)) > 10
    others = fidelity.random_accuracy(explanation, lambda x: model.predict_proba(x.reshape(-1, 64)))
    assert fidelity.post_hoc_accuracy(explanation).low > others.high + 0.1


def test_rows_networks_and_numbers_that_cannot_be_used():
    for rows in (np.array(5.0), torch.tensor(5.0)):
        with pytest.raises(KhotError, match="X must be rows that can be counted"):
            SubsetExplainer(1).fit(from_last_column, rows)
    with pytest.raises(InvalidValueError, match="k must be at most 1000000, but got 1000000000000"):
        SubsetExplainer(10**12).fit(from_last_column, FEW)
    with pytest.raises(InvalidValueError, match=r"selector must have all its parameters, .* is lazy"):
        SubsetExplainer(1, selector=torch.nn.LazyLinear(5)).fit(from_last_column, FEW)


def test_a_selector_that_leaves_out_items_is_told():
    class Leaves(torch.nn.Linear):
        def forward(self, input):
            return super().forward(input).masked_fill(torch.eye(5, dtype=torch.bool)[0], -torch.inf)

    with pytest.raises(InvalidValueError, match="selector must return finite logits, but got -inf"):
        fitted(selector=Leaves(5, 5)).explain(FEW)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_answers_as_a_matrix_and_beyond_single_precision():
    assert fitted(lambda rows: np.asmatrix(from_last_column(rows))).classes_ == 2
    with pytest.raises(BlackBoxError, match="finite"):
        fitted(lambda rows: 1e300 * from_last_column(rows))


def test_columns_of_dates_and_texts_are_named():
    numbers = {name: FEW[:, i] for i, name in enumerate("abcd")}
    for column in (np.arange(60).astype("datetime64[D]"), [str(i) for i in range(60)]):
        with pytest.raises(InvalidTypeError, match=r"column 'day' is .*: encode it as numbers, or drop it"):
            fitted(rows=pyarrow.table(numbers | {"day": column}))


def test_other_choices_must_fit_the_items_and_the_model():
    explanation = fitted().explain(FEW)
    given = from_last_column, explanation.masker, FEW
    with pytest.raises(InvalidValueError, match="a flag for each of the 5 items, but got 9"):
        fidelity.post_hoc_accuracy_of(*given, np.ones((60, 9), bool))
    with pytest.raises(InvalidValueError, match=r"full must be .* \(60, 2\), but got shape \(1, 2\)"):
        fidelity.post_hoc_accuracy_of(*given, explanation.chosen, full=explanation.full[:1])
    with pytest.raises(InvalidTypeError, match="predict_proba must be a function"):
        fidelity.random_accuracy(explanation, None)
    for k in (np.array(2), np.array([1, 2]), np.full(60, 1.5), np.full(60, -1)):
        with pytest.raises(InvalidValueError, match="k must be a whole number, or 60 of them"):
            fidelity.random_items(explanation.free, k)


def test_double_precision_as_the_default_of_torch(tmp_path):
    plain = fitted().explain(FEW)
    torch.set_default_dtype(torch.float64)
    try:
        explainer = fitted()
        explainer.save(tmp_path)
        loaded = SubsetExplainer.load(tmp_path).explain(FEW)
    finally:
        torch.set_default_dtype(torch.float32)
    assert loaded.scores.dtype == plain.scores.dtype
    np.testing.assert_array_equal(loaded.chosen, explainer.explain(FEW).chosen)


class Double(nn.Linear):
    def forward(self, input):
        return super().forward(input).double()


def test_selectors_and_samplers_in_double_precision():
    assert fitted(selector=Double(5, 5)).explain(FEW).scores.dtype == np.float32
    fitted(sampler=lambda logits, k, t, generator=None: (logits / t).softmax(-1).double())


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": lambda logits, k, t, generator=None: logits.softmax(-1).detach()},
        {"relaxation": lambda keys, k, t: hard_topk(keys, k)},
    ],
)
def test_samples_without_a_gradient_are_refused(options):
    with pytest.raises(InvalidValueError, match="sampler and relaxation must have a gradient in the logits"):
        fitted(**options)


def test_a_selector_whose_logits_lose_a_row_is_told():
    class Squeezes(nn.Linear):
        def forward(self, input):
            return super().forward(input).squeeze()

    explainer = fitted(selector=Squeezes(5, 5))
    explainer.explain(FEW)
    with pytest.raises(InvalidValueError, match=r"selector must return .* of shape \(1, 5\), but got .* of shape \(5,"):
        explainer.explain(FEW[:1])


def test_a_selector_that_says_nan():
    explainer = fitted()
    with torch.no_grad():
        next(explainer.module_.selector.parameters()).fill_(torch.nan)
    with pytest.raises(InvalidValueError, match="selector must return numbers, but got NaN"):
        explainer.explain(FEW)


def test_a_training_that_diverges_says_what_to_do():
    with pytest.raises(DivergedError, match="try a smaller learning_rate, or another temperature or random_state"):
        fitted(learning_rate=1e30, epochs=5)


def test_modules_that_wait_for_their_first_row_are_refused():
    with pytest.raises(InvalidValueError, match="is lazy"):
        SubsetExplainer(1, selector=nn.LazyBatchNorm1d(affine=False)).fit(from_last_column, FEW)


def test_codes_must_be_tensors():
    class Arrays(Columns):
        def encode(self, X):  # noqa: N803
            found = super().encode(X)
            return Items(found.codes.numpy(), found.present)

    with pytest.raises(InvalidTypeError, match="encode rows as tensors, but got ndarray and Tensor"):
        fitted(masker=Arrays())


def test_a_row_with_nothing_to_choose_is_the_same_alone():
    explainer, eligible = fitted(), np.ones((60, 5), bool)
    eligible[7] = False
    together, alone = explainer.explain(FEW, eligible=eligible), explainer.explain(FEW[7:8], eligible=eligible[7:8])
    assert not together.chosen[7].any()
    assert not alone.chosen.any()
    with pytest.raises(InvalidValueError, match="leaves no item to choose"):
        explainer.explain(FEW, eligible=np.zeros(5, bool))
    with pytest.raises(InvalidValueError, match="leaves no item to choose"):
        quick(k=1).fit(from_last_column, FEW, eligible=np.zeros((60, 5), bool))


def test_what_fails_leaves_the_explainer_as_it_was():
    explainer = fitted(random_choices=None)
    assert explainer.random_choices_ == 3
    with pytest.raises(BlackBoxError):
        explainer.fit(lambda rows: None, np.tile(FEW, (40, 1)))
    assert explainer.random_choices_ == 3
