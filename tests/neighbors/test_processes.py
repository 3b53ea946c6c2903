"""Two processes train as one does."""

import numpy as np
import pytest

from tests.neighbors.problems import DIGITS, quick


def test_same_loss_curve():
    """With all that is random: batches, candidates, crops and flips, and the noise of the neighbours."""
    options = {"encoder": "convnet", "augment": "both", "epochs": 3}
    one, two = (
        quick(devices=devices, **options).fit(DIGITS.train.inputs[:60], DIGITS.train.labels[:60]) for devices in (1, 2)
    )
    for left, right in zip(one.history_, two.history_, strict=True):
        assert left["loss"] == pytest.approx(right["loss"], abs=1e-5)
    assert one.history_[0]["loss"] != pytest.approx(one.history_[1]["loss"], abs=1e-3)
    assert np.allclose(one.references_, two.references_, atol=1e-3)
