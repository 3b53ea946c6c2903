"""The fast path does what the full one does, or leaves a row to it."""

import numpy as np
import pytest

pytest.importorskip("numba")
from khot.topk.successive._compiled import fast_path, tables
from khot.topk.successive._compiled.constants import OPEN, SUM
from tests.jit.calling import from_python


def keys_of(n: int, dtype: type, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gumbel(size=(4, n)).astype(dtype)


def table_of(keys: np.ndarray, k: int | np.ndarray, t: float | np.ndarray) -> tables.Table:
    count = len(keys)
    k, t = np.broadcast_to(k, count).astype(np.int64), np.broadcast_to(t, count).astype(float)
    return tables.Table(keys, k, t, np.empty((count, 0), np.int64), int(k.max()), SUM)


def value_and_gradient(table: tables.Table, kept: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, gradient, and the path of the fast path, OPEN where it left a row."""
    count, n = table.keys.shape
    g = np.random.default_rng(1).normal(size=(count, 1, n)).astype(table.keys.dtype)
    state = np.empty((count, tables.state_size(n, table.steps, table.keys.itemsize) if kept else 0))
    out, paths = np.empty((count, 1, n), table.keys.dtype), np.empty(count, np.int64)
    tables.forward(table, out, state, paths)
    grad, _ = tables.backward(table, g, state, False)
    return out[:, 0], grad, fast_paths(table)


def fast_paths(table: tables.Table) -> np.ndarray:
    count, n = table.keys.shape
    out, paths = np.empty((count, 1, n), table.keys.dtype), np.empty(count, np.int64)
    tables._fast_forward(table, out, np.empty((count, 0)), paths)
    return paths


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "k", "t"), [(30, 5, 1.0), (100, 12, 0.5), (700, 1, 3.0), (3000, 20, 0.7), (400, 50, 1.0)]
)
def test_both_paths_agree(n: int, k: int, t: float, dtype: type, kept: bool, monkeypatch: pytest.MonkeyPatch):
    table = table_of(keys_of(n, dtype), k, t)
    *fast, paths = value_and_gradient(table, kept)
    assert (paths != OPEN).all()
    monkeypatch.setattr(tables, "_LONG", 0)  # then no row goes the fast path
    *full, _ = value_and_gradient(table, kept)
    tolerance = 1e-6 if dtype is np.float32 else 1e-13
    for x, y in zip(fast, full, strict=True):
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
def test_leaves_rows_that_are_out_of_the_ordinary(name: str):
    assert (fast_paths(table_of(awkward(name), 4, 1.0)) == OPEN).all()
    assert (fast_paths(table_of(awkward("nothing"), 4, 1.0)) != OPEN).all()


def test_cold_rows_and_empty_subsets_are_not_for_it():
    paths = fast_paths(table_of(keys_of(200, np.float64), np.array([0, 3, 3, 3]), np.array([1.0, 0.49, 0.5, np.inf])))
    assert list(paths == OPEN) == [True, True, False, True]


def test_a_workspace_serves_rows_one_after_the_other():
    keys = keys_of(2000, np.float32, seed=3)
    together = value_and_gradient(table_of(keys, np.array([10, 3, 10, 1]), np.array([1.0, 0.5, 1.0, 2.0])), True)[0]
    for b, (k, t) in enumerate([(10, 1.0), (3, 0.5), (10, 1.0), (1, 2.0)]):
        assert np.array_equal(value_and_gradient(table_of(keys[b : b + 1], k, t), True)[0][0], together[b])


def test_put_saturates():
    out = np.empty(3, np.float32)
    from_python(fast_path.put)(np.array([2, 0, 1]), 3, np.array([1e300, -1e300, 2.0]), 0, 3, out)
    assert list(out) == [-np.finfo(np.float32).max, 2.0, np.finfo(np.float32).max]
