"""Bad parameters, rows, labels and encoders are refused with an error that says what to do."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from khot.errors import DivergedError, InvalidTypeError, InvalidValueError, KhotError
from tests.neighbors.problems import DIGITS, blobs, quick

X, Y = blobs()
IMAGES = DIGITS.train.inputs[:60]


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


def test_encoders_that_do_not_fit_are_refused_before_the_training():
    for encoder in (nn.Linear(9, 2), nn.Linear(4, 2).double()):
        with pytest.raises(InvalidValueError, match=r"float32 rows such as those of shape \(2, 4\), but it failed"):
            quick(encoder=encoder).fit(X, Y)
    assert quick(encoder=nn.LazyLinear(5), epochs=1).fit(X, Y).references_.shape == (60, 5)


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
