"""A training that was stopped and resumed ends where the other does, and belongs to the same rows and seed."""

import numpy as np
import pytest
import torch

from khot.errors import InvalidValueError, RunFolderError
from tests.neighbors.problems import blobs, quick

X, Y = blobs()


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


def test_without_a_seed_a_resumed_training_takes_that_of_the_run(tmp_path):
    X, y = blobs()  # noqa: N806
    whole = quick(epochs=3, folder=tmp_path / "run", random_state=None).fit(X, y)
    again = quick(epochs=3, folder=tmp_path / "run", random_state=None, resume=True).fit(X, y)
    assert torch.equal(whole.references_, again.references_)
    with pytest.raises(InvalidValueError, match="pass the int, or None"):
        quick(folder=tmp_path / "run", random_state=np.random.RandomState(0), resume=True).fit(X, y)
