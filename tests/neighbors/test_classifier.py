"""The classifier learns, explains itself, grows, resumes, and says what is wrong with its input."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import khot
from khot._estimators.scaling import Scaling
from khot.errors import DivergedError, InvalidTypeError, InvalidValueError, KhotError, RunFolderError
from khot.neighbors import SubsetKNNClassifier
from khot.neighbors._objective import NeighborLoss
from khot.neighbors.augmentation import augmented
from khot.schedules import Exponential
from khot.training import SGD, Step
from tests.neighbors.problems import DIGITS, PIXELS, TEST_PIXELS, WORDS, blobs, own_encoder, quick


def test_learns_digits_and_shows_its_evidence():
    model = SubsetKNNClassifier(encoder="convnet", epochs=3, random_state=0)
    model.fit(DIGITS.train.inputs, WORDS[DIGITS.train.labels])
    predicted = model.predict(DIGITS.test.inputs)
    assert (predicted == WORDS[DIGITS.test.labels]).mean() >= 0.96
    assert model.score(DIGITS.test.inputs, WORDS[DIGITS.test.labels]) >= 0.96

    distances, rows = model.kneighbors(DIGITS.test.inputs)
    assert rows.shape == distances.shape == (360, 9)
    assert (np.diff(distances) >= 0).all()
    votes = WORDS[DIGITS.train.labels[rows]]
    shares = model.predict_proba(DIGITS.test.inputs)
    assert np.allclose(shares, (votes[:, :, None] == model.classes_).mean(1), atol=1e-8)
    assert np.allclose(shares.max(1), (votes == predicted[:, None]).mean(1), atol=1e-8)


def test_training_beats_raw_pixels():
    """With two columns of signal among many of noise, neighbours in the input are of no use."""
    noise = np.random.default_rng(0)
    labels = np.arange(900) % 3
    rows = noise.normal(size=(900, 60))
    rows[:, :3] += 2 * np.eye(3)[labels]
    model = quick(n_neighbors=9, epochs=10, batch_size=50, n_candidates=50).fit(rows[:600], labels[:600])
    plain = quick(n_neighbors=9, encoder=nn.Linear(60, 60), epochs=1, learning_rate=1e-9).fit(rows[:600], labels[:600])
    assert model.score(rows[600:], labels[600:]) > plain.score(rows[600:], labels[600:]) + 0.1


@pytest.mark.parametrize(
    "options",
    [
        {"relaxation": khot.neuralsort, "temperature": 16.0},
        {"temperature": Exponential(4.0, 0.5, steps=40)},
        {"optimizer": SGD(momentum=0.9), "learning_rate": 0.01},
        {"validation_share": 0.0},
        {"precision": "bf16-mixed"},
        {"encoder": own_encoder(), "learning_rate": 0.01},
    ],
)
def test_options(options):
    X, y = blobs(120)  # noqa: N806
    model = quick(epochs=10, **options).fit(X, y)
    assert model.score(*blobs(120, seed=1)) > 0.9
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    assert ("validation" in model.history_[0]) == (options.get("validation_share") != 0)


def test_a_seed_fixes_the_result():
    X, y = blobs()  # noqa: N806
    one, two, other = (quick(random_state=seed).fit(X, y).references_ for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_arrays_and_tensors_are_alike():
    X, y = blobs()  # noqa: N806
    array, tensor = quick().fit(X, y), quick().fit(torch.from_numpy(X), torch.from_numpy(y))
    assert torch.equal(array.references_, tensor.references_)
    images, labels = DIGITS.train.inputs[:40], DIGITS.train.labels[:40]
    gray, channel = (quick(encoder="resnet", epochs=1).fit(x, labels) for x in (images, images[..., None]))
    assert torch.equal(gray.references_, channel.references_)


def test_the_scale_of_the_input_does_not_matter():
    """By gradient descent, as Adam makes large steps of gradients that are rounding errors."""
    X, y = blobs()  # noqa: N806
    one, other = (quick(optimizer=SGD(0.9), learning_rate=0.01).fit(rows, y) for rows in (X, X * 1e-3 + 1e6))
    assert torch.allclose(one.references_, other.references_, atol=1e-6)


def test_an_own_encoder_is_copied():
    X, y = blobs()  # noqa: N806
    encoder = own_encoder()
    before = [p.clone() for p in encoder.parameters()]
    model = quick(encoder=encoder).fit(X, y)
    assert all(torch.equal(a, b) for a, b in zip(before, encoder.parameters(), strict=True))
    assert not torch.equal(next(model.encoder_.parameters()), before[0])


def test_added_references_vote_and_may_be_of_a_new_class():
    X, y = blobs()  # noqa: N806
    model = quick().fit(X, np.array(["b", "c", "d"])[y])
    far = np.full((5, 4), -30.0)
    model.add_references(far, ["a"] * 5)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.predict(far[:1]).tolist() == ["a"]
    assert model.kneighbors(far[:1])[1].tolist() == [[60, 61, 62]]
    assert model.score(X, np.array(["b", "c", "d"])[y]) > 0.9
    with pytest.raises(InvalidTypeError, match="labels of the kind seen in fit"):
        model.add_references(far, [1] * 5)


def test_whole_numbers_stay_whole_when_references_are_added_with_floats():
    X, y = blobs()  # noqa: N806
    model = quick().fit(X, y).add_references(X, y.astype(float))
    assert model.classes_.dtype == y.dtype
    with pytest.raises(InvalidValueError, match="label type"):
        model.add_references(X[:1], [0.5])


def test_resumed_training_ends_where_the_other_does(tmp_path):
    X, y = blobs()  # noqa: N806
    whole = quick(epochs=4).fit(X, y)

    class StopsError(Exception):
        pass

    def stopping(step: int) -> float:
        steps.append(step)
        if step == 5 and not resumed:
            raise StopsError
        return 1.0

    resumed, steps = [], []
    with pytest.raises(StopsError):
        quick(epochs=4, temperature=stopping, folder=tmp_path / "run").fit(X, y)
    resumed.append(True)
    steps.clear()
    model = quick(epochs=4, temperature=stopping, folder=tmp_path / "run", resume=True).fit(X, y)
    assert 1 not in steps  # it went on after an epoch of two steps
    assert torch.equal(model.references_, whole.references_)
    with pytest.raises(RunFolderError, match="resume=True"):
        quick(epochs=4, temperature=stopping, folder=tmp_path / "run").fit(X, y)
    with pytest.raises(RunFolderError, match="other settings: loss"):
        quick(epochs=4, n_neighbors=2, temperature=stopping, folder=tmp_path / "run", resume=True).fit(X, y)


def test_augmented_images_are_moved_and_mirrored():
    image = torch.arange(1, 65, dtype=torch.uint8).reshape(1, 8, 8, 1)
    centre, mirrored = torch.tensor([[0.5, 0.5, 0.9]]), torch.tensor([[0.5, 0.5, 0.1]])
    assert torch.equal(augmented(image, centre, "both"), image)
    assert torch.equal(augmented(image, mirrored, "both"), image.flip(2))
    assert torch.equal(augmented(image, mirrored, "flip"), image.flip(2))
    assert torch.equal(augmented(image, mirrored, "crop"), image)
    down = augmented(image, torch.tensor([[0.9, 0.5, 0.9]]), "crop")
    assert torch.equal(down, torch.cat([image[:, 1:], image[:, 6:7]], 1))
    left = augmented(image, torch.tensor([[0.5, 0.0, 0.9]]), "both")
    assert torch.equal(left, torch.cat([image[:, :, 1:2], image[:, :, :7]], 2))
    assert torch.equal(augmented(image, torch.tensor([[0.9, 0.0, 0.9]]), "flip"), image)


def test_a_fit_that_fails_leaves_the_classifier_as_it_was():
    X, y = blobs(30)  # noqa: N806
    model = quick().fit(X, y)
    before = model.predict(X)
    model.temperature = -1.0
    with pytest.raises(KhotError, match="temperature"):
        model.fit(1000 + 50 * X, y)
    with pytest.raises(KhotError, match="one class"):
        model.fit(X[:, :2], np.zeros(30))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e9])
def test_a_constant_column_is_only_shifted(constant):
    X, y = blobs(30)  # noqa: N806
    wide = np.column_stack([X, np.full(30, constant)])
    model = quick(epochs=1).fit(wide, y)
    assert model.scaling_.scale[-1] == 1.0
    wide[:, -1] += 0.01
    assert model.score(wide, y) > 0.8


def test_the_scale_of_tiny_and_huge_columns():
    X, y = blobs(30)  # noqa: N806
    scale = quick(epochs=1).fit(X, y).scaling_.scale
    for unit in (1e-200, 1e100):
        np.testing.assert_allclose(quick(epochs=1).fit(X * unit, y).scaling_.scale, scale * unit)


def test_few_rows_are_all_candidates():
    X, y = blobs(9)  # noqa: N806
    assert quick(n_candidates=1000, batch_size=1000).fit(X, y).predict(X).shape == (9,)


X, Y = blobs()
IMAGES = DIGITS.train.inputs[:60]


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({}, X, np.zeros(60), "at least two classes, but got one"),
        ({}, np.where(X > 3, np.nan, X), Y, "X contains NaN: fill in"),
        ({}, np.where(X > 3, np.inf, X), Y, "X contains infinity"),
        ({}, X * 1e307, Y, r"numbers up to 1e\+300, but got"),
        ({}, X, Y[:-1], "inconsistent numbers of samples"),
        ({}, X, Y + 0.5, "Unknown label type"),
        ({}, IMAGES, Y, "'mlp' is for tables"),
        ({}, np.zeros((60, 2, 2, 2, 2)), Y, "reshape it"),
        ({"encoder": "convnet"}, X, Y, "'convnet' is for images"),
        ({"encoder": "resnet"}, IMAGES[:, :4], Y, "at least 8 × 8 pixels, but got 4 × 8"),
        ({"encoder": "transformer"}, X, Y, "encoder must be one of mlp, convnet, resnet"),
        ({"encoder": 3}, X, Y, "encoder must be one of"),
        ({"encoder": nn.Unflatten(1, (2, 2))}, X, Y, "nothing to train"),
        (
            {"encoder": nn.Sequential(nn.Linear(4, 4), nn.Unflatten(1, (2, 2)))},
            X,
            Y,
            r"features \(rows, features\), but got shape \(2, 2, 2\) for 2 rows",
        ),
        ({"n_neighbors": 61, "n_candidates": 100}, X, Y, "reference rows, n_samples = 60, but got 61"),
        ({"n_neighbors": 21}, X, Y, "n_candidates must be at least n_neighbors, 21, but got 20"),
        ({"n_neighbors": 2.5}, X, Y, "n_neighbors must be an int"),
        ({"n_neighbors": 0}, X, Y, "n_neighbors must be at least 1"),
        ({"validation_share": 1.0}, X, Y, "validation_share must lie below 1"),
        ({"resume": True}, X, Y, "resume needs the folder"),
        ({"random_state": -1}, X, Y, "random_state must be an int from 0"),
        ({"augment": "crop"}, X, Y, "augment is for images"),
        ({"augment": True}, X, Y, "augment must be one of none, crop"),
        ({"temperature": -1.0}, X, Y, "temperature must be positive"),
        ({"relaxation": "neuralsort"}, X, Y, "relaxation must be a function"),
        ({"device": "abacus"}, X, Y, "device must be one of"),
        ({"epochs": 0}, X, Y, "epochs must be at least 1"),
    ],
)
def test_bad_input_of_fit(options, X, y, message):  # noqa: N803
    with pytest.raises(KhotError, match=message):
        quick(**options).fit(X, y)


def test_bad_input_of_predict():
    table = quick(epochs=1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        table.predict(X[:, :3])
    with pytest.raises(InvalidValueError, match=r"shape seen in fit, \(4,\), but got \(4, 4, 1\)"):
        table.predict(np.zeros((5, 4, 4)))
    with pytest.raises(InvalidValueError, match="X contains NaN"):
        table.predict(np.full((5, 4), np.nan))
    table.n_neighbors = 61
    with pytest.raises(InvalidValueError, match="choose fewer neighbours"):
        table.predict(X)
    images = quick(encoder="convnet", epochs=1).fit(IMAGES, Y)
    with pytest.raises(InvalidValueError, match=r"\(8, 8, 1\), but got \(8, 8, 3\)"):
        images.add_references(np.zeros((1, 8, 8, 3)), [0])


def test_verbose_tells_the_accuracy(capsys):
    model = quick(verbose=True).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    accuracies = [f"validation accuracy {record['validation']['accuracy']:.4f}" for record in model.history_]
    assert [line.split(", ")[1] for line in lines] == accuracies


def test_more_training_counts_although_the_validation_cannot_get_better():
    X, y = blobs(100)  # noqa: N806
    model = quick(epochs=6).fit(X, y)
    best = model.history_[model.best_epoch_]
    assert {record["validation"]["accuracy"] for record in model.history_} == {1.0}
    assert best["loss"] == min(record["loss"] for record in model.history_)
    assert model.best_epoch_ > 0


def test_the_prediction_has_the_largest_share_of_tied_votes():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 4  # noqa: N806
    model = quick(n_neighbors=4, epochs=1).fit(X, y)
    shares = model.predict_proba(X)
    top = np.sort(shares, 1)[:, -2:]
    assert ((top[:, 1] - top[:, 0] > 0) & (top[:, 1] - top[:, 0] < 1e-8)).sum() > 10
    assert np.array_equal(model.classes_[shares.argmax(1)], model.predict(X))
    assert np.allclose(shares.sum(1), 1, atol=1e-15)


def test_other_numbers_of_neighbors():
    model = quick(epochs=1).fit(X, Y)
    distances, indices = model.kneighbors(X[:5])
    more, rows = model.kneighbors(X[:5], n_neighbors=7)
    assert np.array_equal(more[:, :3], distances)
    assert np.array_equal(model.kneighbors(X[:5], 7, return_distance=False), rows)
    assert np.array_equal(rows[:, :3], indices)
    with pytest.raises(InvalidValueError, match="choose fewer neighbours"):
        model.kneighbors(X, n_neighbors=61)


def test_encoders_that_do_not_fit_are_refused_before_the_training():
    for encoder in (nn.Linear(9, 2), nn.Linear(4, 2).double()):
        with pytest.raises(InvalidValueError, match=r"float32 rows such as those of shape \(2, 4\), but it failed"):
            quick(encoder=encoder).fit(X, Y)
    assert quick(encoder=nn.LazyLinear(5), epochs=1).fit(X, Y).references_.shape == (60, 5)


@pytest.mark.parametrize("label", [300.0, -1.0])
def test_labels_of_references_may_need_a_larger_type(label: float):
    model = quick(epochs=1).fit(X, Y.astype(np.uint8))
    model.add_references(X[:1], [label])
    assert model.classes_.tolist() == sorted([0, 1, 2, int(label)])


@pytest.mark.parametrize(
    ("labels", "more"), [(np.uint64(2**60) + Y.astype(np.uint64), np.array([-5])), (Y / 1.0, np.array([2**53 + 1]))]
)
def test_labels_of_references_that_have_no_type_in_common(labels: np.ndarray, more: np.ndarray):
    model = quick(epochs=1).fit(X, labels)
    with pytest.raises(InvalidValueError, match="go together with those of fit"):
        model.add_references(X[:1], more)
    assert len(model.references_) == len(X)


def test_few_rows_left_for_the_training():
    with pytest.raises(InvalidValueError, match="validation_share must leave rows of two classes"):
        quick(validation_share=0.98).fit(X, Y)


class Pooling(nn.Module):
    """Returns other rows than it was given when it does not train."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(rows) if self.training else self.layer(rows)[:-1]


def test_features_for_every_row():
    with pytest.raises(InvalidValueError, match=r"but got shape \(1, 3\) for 2 rows: flatten"):
        quick(encoder=Pooling()).fit(X, Y)


def test_a_training_that_diverges():
    for share in (0.1, 0.0):
        with pytest.raises(DivergedError, match="try a smaller learning_rate"):
            quick(learning_rate=1e25, validation_share=share).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ma.masked_greater(X, 1), "masked values cannot be used"),
        (X.astype("datetime64[s]"), "datetime64.* cannot be used"),
        (torch.from_numpy(X).to_sparse(), "pass x.to_dense"),
    ],
)
def test_rows_that_only_look_like_numbers(rows: Any, message: str):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        quick().fit(rows, Y)
    assert quick(epochs=1).fit(torch.from_numpy(X).bfloat16(), Y).references_.dtype == torch.float32


@pytest.mark.parametrize("change", ["labels", "rows"])
def test_held_out_rows_count_when_a_training_is_resumed(tmp_path, change: str):
    quick(epochs=2, folder=tmp_path).fit(X, Y)
    rows, labels = X.copy(), Y.copy()
    if change == "rows":
        rows[:] *= 1 + 1e-9
    else:
        labels[:] = (labels + 1) % 3
    with pytest.raises(RunFolderError, match="other settings"):
        quick(epochs=3, folder=tmp_path, resume=True).fit(rows, labels)
    quick(epochs=2, folder=tmp_path, resume=True).fit(X, Y)


@pytest.mark.parametrize("labels", [Y.astype("S"), Y.astype("datetime64[D]")])
def test_labels_of_other_kinds(labels: np.ndarray):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=r"[Cc]onvert"):
        quick().fit(X, labels)


def test_images_with_channels_first():
    with pytest.raises(InvalidValueError, match="if their channels come first, move them to the end"):
        quick(encoder="convnet").fit(np.zeros((60, 3, 8, 8)), Y)


def test_a_device_that_is_not_there():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(InvalidValueError, match="device 'cuda' is not available"):
        quick(device="cuda").fit(X, Y)


def test_a_training_of_unknown_seed_cannot_be_resumed(tmp_path):
    with pytest.raises(InvalidValueError, match="random_state is None: pass its int"):
        quick(random_state=None, folder=tmp_path, resume=True).fit(X, Y)


@pytest.mark.parametrize("relaxation", [khot.neuralsort, khot.successive_softmax])
def test_relaxations_are_kept(tmp_path, relaxation):
    quick(relaxation=relaxation, epochs=1).fit(X, Y).save(tmp_path / "model")
    assert SubsetKNNClassifier.load(tmp_path / "model").relaxation is relaxation


def test_tables_of_pixels():
    model = SubsetKNNClassifier(epochs=5, random_state=0).fit(PIXELS, DIGITS.train.labels)
    assert model.score(TEST_PIXELS, DIGITS.test.labels) >= 0.95


def test_a_row_is_not_its_own_candidate():
    """Where every row has a label of its own, no neighbour can be right."""
    rows = np.eye(6, dtype=np.float32)
    loss = NeighborLoss(rows, np.arange(6), Scaling(np.zeros(6), np.ones(6)), 2, 6, khot.successive_softmax, "none", 0)
    step = Step(0, 0, torch.tensor([1, 4]), 1.0, torch.Generator())
    batch = (torch.from_numpy(rows[[1, 4]]), torch.tensor([1, 4]))
    assert loss(nn.Identity(), batch, step).item() == 0
    assert loss(nn.Identity(), (batch[0], torch.tensor([0, 0])), step).item() < 0
