"""Passes over the items of a row."""

import numpy as np
import pytest

from khot.topk.successive._compiled import far_items
from tests.jit.calling import from_python

maxima_of, above = from_python(far_items.maxima_of), from_python(far_items.above)


@pytest.mark.parametrize("groups", [1, 8, 64, 100])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_above_finds_all_items_if_there_is_room(groups: int, share: float):
    for seed in range(20):
        row = np.random.default_rng(seed).normal(size=100).astype(np.float32).round(1)
        threshold = np.float32(np.quantile(row, 1 - share)) if share < 1 else np.float32(-np.inf)
        maxima = np.empty(groups, np.float32)
        maxima_of(row, 0, len(row), maxima)
        wanted = np.flatnonzero(row > threshold)
        for room in {1, 2, len(wanted), len(wanted) + 1, len(wanted) + 7, 101} - {0}:
            index = np.full(room, -1)
            count = above(row, threshold, maxima, index)
            assert count == min(len(wanted), room)
            if count < room:
                assert sorted(index[:count]) == list(wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf, 0.0])
def test_the_maxima_tell_of_nan(value: float, dtype: type):
    for place in (0, 7, 8, 63, 100, 128):
        row = np.random.default_rng(place).normal(size=129).astype(dtype)
        row[place] = value
        maxima = np.empty(32, dtype)
        assert maxima_of(row, 0, len(row), maxima) == (not np.isnan(value))
        assert np.isnan(value) or maxima.max() == row.max()
