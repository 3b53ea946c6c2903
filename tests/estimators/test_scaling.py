"""Mean and spread of columns, from pieces, and the scaling that they determine."""

import numpy as np
import pytest
import torch

from khot._estimators.scaling import Scaling, mean_and_spread, one_for_zero, standard_scaling
from khot.errors import InvalidValueError

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


def test_rows_are_shifted_before_they_are_rounded():
    rows = torch.tensor([[1e9 + 1.0], [1e9 + 2.0]], dtype=torch.float64)
    scaled = Scaling(np.array([1e9]), np.array(2.0))(rows)
    assert scaled.dtype == torch.float32
    assert scaled.tolist() == [[0.5], [1.0]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64])
def test_images_have_their_channels_first(dtype):
    images = torch.arange(24).reshape(1, 2, 4, 3).to(dtype)
    scaled = Scaling(np.array([0.0, 1.0, 2.0]), np.ones(3))(images)
    assert scaled.dtype == torch.float32
    assert torch.equal(scaled, 3.0 * torch.arange(8).reshape(1, 1, 2, 4).expand(1, 3, 2, 4))


def test_standard_scaling():
    scaled = standard_scaling(np.column_stack([ROWS, np.full(100, 5.0)]))(torch.from_numpy(ROWS[:, [0, 1, 2, 2]]))
    np.testing.assert_allclose(scaled[:, :3].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled[:, :3].std(0, correction=0), 1, atol=1e-6)
    np.testing.assert_allclose(scaled[:, 3], ROWS[:, 2] - 5, rtol=1e-6)
    with pytest.raises(InvalidValueError, match=r"numbers up to 1e\+300, but got 2e\+300: scale it"):
        standard_scaling(np.array([[0.0], [2e300]]))
