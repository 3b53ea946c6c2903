"""Queries of a model, and the cache of its answers."""

import numpy as np
import pytest

from khot.errors import BlackBoxError, InvalidTypeError, RunFolderError
from khot.explain.black_box import BlackBox

ROWS = np.linspace(0, 1, 10)[:, None]


def model(rows):
    return np.hstack([1 - rows, rows])


def test_batches_are_one_answer_together():
    black_box = BlackBox(model, batch_size=4)
    batches = black_box.ask_in_batches(ROWS)
    assert next(batches).shape == (4, 2)
    assert black_box.classes == 2
    assert [len(batch) for batch in batches] == [4, 2]
    np.testing.assert_allclose(black_box.ask(ROWS), model(ROWS), rtol=1e-6)


def test_the_number_of_classes_stays():
    black_box = BlackBox(lambda rows: np.full((len(rows), 2 + (len(rows) < 4)), 1 / (2 + (len(rows) < 4))), 4)
    with pytest.raises(BlackBoxError, match=r"must return shape \(2, 2\).* but got \(2, 3\) for rows 8 to 9"):
        black_box.ask(ROWS)


def test_equal_questions_have_answers_of_their_own(tmp_path):
    asked = []

    def noisy(rows):
        asked.append(len(rows))
        p = np.clip(rows + 1e-3 * len(asked), 0, 1)
        return np.hstack([1 - p, p])

    first, again = (BlackBox(noisy, batch_size=10, cache=tmp_path) for _ in range(2))
    answers = [first.ask(ROWS), first.ask(ROWS)]
    assert (answers[0] != answers[1]).any()
    np.testing.assert_array_equal([again.ask(ROWS), again.ask(ROWS)], answers)
    assert asked == [10, 10, 8, 8]
    assert len(list(tmp_path.glob("answers-*/0-10.npy"))) == 2
    with pytest.raises(RunFolderError, match=r"another model, which predicted .* for the first row"):
        BlackBox(lambda rows: model(1 - rows), 10, tmp_path).ask(ROWS)


def test_a_model_must_be_a_function():
    with pytest.raises(InvalidTypeError, match="predict_proba must be a function of rows, but got 3"):
        BlackBox(3, 10)  # pyright: ignore[reportArgumentType]
