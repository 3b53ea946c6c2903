"""The classifier learns, whatever its options and the scale of its input, and says how well."""

import numpy as np
import pytest
import torch
from torch import nn

import khot
from khot._estimators.scaling import Scaling
from khot.neighbors import SubsetKNNClassifier
from khot.neighbors._objective import NeighborLoss
from khot.neighbors.augmentation import augmented
from khot.schedules import Exponential
from khot.training import SGD, Step
from tests.neighbors.problems import DIGITS, PIXELS, TEST_PIXELS, WORDS, blobs, own_encoder, quick

X, Y = blobs()


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
