"""Mean and spread of columns, from pieces."""

import numpy as np
import pytest

from khot._estimators.scaling import mean_and_spread, one_for_zero

ROWS = np.random.default_rng(0).normal(size=(100, 3)) * [1, 5, 0.1] + [0, 3, -7]


def in_pieces(rows: np.ndarray):
    return mean_and_spread(lambda: (rows[start : start + 7] for start in range(0, len(rows), 7)))


@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e300])
def test_as_numpy_has_them_whatever_the_unit(unit):
    mean, spread = in_pieces(ROWS * unit)
    np.testing.assert_allclose(mean / unit, ROWS.mean(0), rtol=1e-13)
    np.testing.assert_allclose(spread / unit, ROWS.std(0), rtol=1e-13)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float16, np.float32])
def test_kinds_of_numbers(dtype):
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 3)).astype(np.uint8).astype(dtype)
    mean, spread = in_pieces(images)
    np.testing.assert_allclose(mean, images.astype(float).mean((0, 1, 2)), rtol=1e-13)
    np.testing.assert_allclose(spread, images.astype(float).std((0, 1, 2)), rtol=1e-13)


def test_constant_columns_have_no_spread():
    rows = np.column_stack([np.full(1000, 0.1), np.full(1000, -7.7), np.zeros(1000), np.arange(1000)])
    mean, spread = in_pieces(rows)
    np.testing.assert_allclose(mean, [0.1, -7.7, 0, 499.5], rtol=1e-13)
    assert np.array_equal(spread == 0, [True, True, True, False])
    assert np.array_equal(one_for_zero(spread)[:3], [1, 1, 1])
