"""The quick lane does what the thorough one does, or gives up."""

import numpy as np
import pytest

from khot._jit import pool
from khot.topk.successive._compiled import fast_path as quick
from khot.topk.successive._compiled import full_path as rows
from khot.topk.successive._compiled import tables as successive
from khot.topk.successive._compiled.constants import SUM


def keys_of(n: int, dtype: type, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gumbel(size=(4, n)).astype(dtype)


def both(
    keys: np.ndarray, k: int, t: float, kept: bool = True
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Value and gradient by both lanes, and the paths of the quick one."""
    count, n = keys.shape
    ks, ts, nowhere = np.full(count, k), np.full(count, t), np.empty((count, 0), np.int64)
    g = np.random.default_rng(1).normal(size=(count, 1, n)).astype(keys.dtype)
    results, paths, every = [], np.empty(count, np.int64), np.arange(count)
    for thorough in (False, True):
        state = np.empty((count, successive.room(n, k, keys.itemsize) if kept else 0))
        out, grad, done, in_t = (
            np.empty((count, 1, n), keys.dtype),
            np.empty_like(keys),
            np.zeros(count, bool),
            np.empty(count),
        )
        if thorough:
            shared = every, keys, ks, ts, nowhere, SUM
            pool.in_blocks(successive._forward, count, 1, *shared, out, state, paths.copy())
            pool.in_blocks(successive._backward, count, 1, *shared, g, False, state, grad, in_t)
        else:
            pool.in_blocks(successive._quick_forward, count, 1, keys, ks, ts, out, state, paths)
            pool.in_blocks(successive._quick_backward, count, 1, keys, ks, ts, g, state, grad, done)
            assert (done == (paths >= 0)).all()
        results.append((out[:, 0], grad))
    return results, paths


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "k", "t"), [(30, 5, 1.0), (100, 12, 0.5), (700, 1, 3.0), (3000, 20, 0.7), (400, 50, 1.0)]
)
def test_both_lanes_agree(n: int, k: int, t: float, dtype: type, kept: bool):
    (ours, theirs), paths = both(keys_of(n, dtype), k, t, kept)
    assert (paths >= 0).all()
    tolerance = 1e-6 if dtype is np.float32 else 1e-13
    for x, y in zip(ours, theirs, strict=True):
        assert np.abs(x - y).max() <= tolerance * max(1, np.abs(y).max())


def awkward(name: str) -> np.ndarray:
    keys = keys_of(1000, np.float32)
    if name == "NaN":
        keys[:, 7] = np.nan
    elif name == "inf":
        keys[:, 7] = np.inf
    elif name == "equal":
        keys[:] = 1
    elif name == "absent":
        keys[:, 5:] = -np.inf
    elif name == "far apart":
        keys *= 1e4
    return keys


@pytest.mark.parametrize("name", ["NaN", "inf", "equal", "absent", "far apart"])
def test_gives_up_where_something_is_out_of_the_ordinary(name: str):
    keys = awkward(name)
    paths = np.empty(len(keys), np.int64)
    out, state = np.empty((len(keys), 1, keys.shape[1]), np.float32), np.empty((len(keys), 0))
    k, t = np.full(len(keys), 4), np.ones(len(keys))
    pool.in_blocks(successive._quick_forward, len(keys), 1, keys, k, t, out, state, paths)
    assert (paths == -1).all()


def test_cold_rows_and_empty_subsets_are_not_for_it():
    keys, paths = keys_of(200, np.float64), np.empty(4, np.int64)
    out, state = np.empty((4, 1, 200)), np.empty((4, 0))
    k, t = np.array([0, 3, 3, 3]), np.array([1.0, 0.49, 0.5, np.inf])
    pool.in_blocks(successive._quick_forward, 4, 1, keys, k, t, out, state, paths)
    assert list(paths < 0) == [True, True, False, True]


def test_a_desk_serves_rows_one_after_the_other():
    keys = keys_of(2000, np.float32, seed=3)
    desk, u = quick.desk(keys, 10), np.empty(2000, np.float32)
    first, again = np.empty(2000, np.float32), np.empty(2000, np.float32)
    assert quick.forward(keys[0], 10, 1.0, first, u, np.empty(0), desk) >= 0
    assert quick.forward(keys[1], 3, 0.5, again, u, np.empty(0), desk) >= 0
    assert quick.forward(keys[0], 10, 1.0, again, u, np.empty(0), desk) >= 0
    assert np.array_equal(first, again)


def test_put_saturates():
    out = np.empty(3, np.float32)
    rows.put(np.array([2, 0, 1]), np.array([1e300, -1e300, 2.0]), out)
    assert list(out) == [np.finfo(np.float32).max, -np.finfo(np.float32).max, 2.0]
