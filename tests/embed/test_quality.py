"""Measures of quality against scikit-learn and loops."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn import manifold
from sklearn.neighbors import KNeighborsClassifier

from khot.embed.quality import continuity, knn_error, trustworthiness
from khot.errors import InvalidTypeError, InvalidValueError


def problem(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and a bad embedding of them, without ties."""
    noise = np.random.default_rng(seed)
    rows = noise.normal(size=(n, 9))
    return rows, rows[:, :2] + 0.5 * noise.normal(size=(n, 2))


def slow_trustworthiness(rows, points, k):
    """By sorting (distance, index) of each point; whole numbers, so that distances are exact."""
    n, excess = len(rows), 0

    def order(table, i):
        return sorted((sum((table[i] - table[j]) ** 2), j) for j in range(n) if j != i)

    for i in range(n):
        rank = {j: place for place, (_, j) in enumerate(order(rows, i), start=1)}
        excess += sum(max(0, rank[j] - k) for _, j in order(points, i)[:k])
    return 1 - 2 / (n * k * (2 * n - 3 * k - 1)) * excess


@pytest.mark.parametrize("k", [1, 5, 12, 80])
@pytest.mark.parametrize("memory", [100_000, 2**28])
def test_against_scikit_learn(k: int, memory: int):
    rows, points = problem()
    expected = manifold.trustworthiness(rows, points, n_neighbors=k)
    assert trustworthiness(rows, points, k, memory) == pytest.approx(expected, abs=1e-12)
    expected = manifold.trustworthiness(points, rows, n_neighbors=k)
    assert continuity(rows, points, k, memory) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("offset", [1e3, -1e5])
def test_far_from_the_origin(offset: float):
    rows, points = problem()
    expected = manifold.trustworthiness(rows, points, n_neighbors=12)
    assert trustworthiness(rows + offset, points + offset) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e200, 1.7e306])
def test_sizes_whose_squares_overflow(unit: float):
    rows, points = problem()
    expected = trustworthiness(rows, points)
    assert trustworthiness(rows / 100 * unit, points / 100 * unit) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("outlier", [1e9, 1e12])
def test_outliers(outlier: float):
    rows, points = problem()
    rows[0], points[0] = outlier, outlier
    expected = manifold.trustworthiness(rows, points, n_neighbors=12)
    assert trustworthiness(rows, points) == pytest.approx(expected, abs=1e-4)  # seen from there, others are level
    labels = points[:, 0] > points[1:, 0].mean()
    assert knn_error(points, labels, points[1:], labels[1:]) == 0


def test_whole_numbers_far_from_the_origin():
    rows, points = (np.random.default_rng(0).integers(9, size=(60, d)) for d in (5, 2))
    expected = slow_trustworthiness(rows, points, 5)
    assert trustworthiness(rows + 10**12, points - 10**12, 5) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("k", [1, 4])
def test_ties_go_to_the_smaller_index(k: int):
    noise = np.random.default_rng(0)
    rows, points = noise.integers(2, size=(40, 6)), noise.integers(3, size=(40, 2))
    assert trustworthiness(rows, points, k) == pytest.approx(slow_trustworthiness(rows, points, k), abs=1e-14)


@pytest.mark.parametrize("unit", [0.1, 1 / 3, 1e-4, 1e5 / 7])
def test_ties_of_fractions(unit: float):
    """Equal distances that differ by rounding, and copies, whose distance is 0 up to rounding."""
    noise = np.random.default_rng(1)
    rows, points = noise.integers(5, size=(60, 5)), noise.integers(6, size=(60, 2))
    rows[30:40] = rows[20:30]
    expected = slow_trustworthiness(rows, points, 5)
    assert trustworthiness((rows + 1 / 3) * unit, (points - 0.7) * unit, 5) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_of_copies_the_first_is_the_nearest(seed: int):
    """Rows that are equal, or as good as equal, among others."""
    noise = np.random.default_rng(seed)
    row, others = noise.normal(size=37) + 5, noise.normal(size=(200, 37))
    near = row * (1 + 1e-15 * noise.integers(-2, 3, size=(50, 37)))
    assert knn_error(np.vstack([others, near]), np.arange(250), [row], [200]) == 0


def test_kinds_of_input_are_alike():
    rows, points = (np.round(part * 4) for part in problem(100))
    expected = trustworthiness(rows, points)
    assert trustworthiness(torch.from_numpy(rows), torch.from_numpy(points).float()) == expected
    assert trustworthiness(scipy.sparse.csr_array(rows), points.astype(np.int8)) == expected


def test_memory_is_bounded():
    """No table has more than the bytes allowed."""
    sizes, (rows, points) = [], problem(1000)

    class Recorder(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                sizes.append(result.numel() * result.element_size())
            return result

    with Recorder():
        trustworthiness(rows, points, memory=2**18)
    assert 2**12 < max(sizes) <= 2**18


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("memory", [1, 2**28])
def test_error_against_scikit_learn(k: int, memory: int):
    _, points = problem(400)
    labels = np.array(["a", "b", "c"])[(points[:, 0] > 0).astype(int) + (points[:, 1] > 0.3)]
    known, asked = slice(0, 300), slice(300, 400)
    noisy = np.where(np.random.default_rng(1).random(400) < 0.2, "c", labels)
    expected = KNeighborsClassifier(k).fit(points[known], noisy[known]).score(points[asked], noisy[asked])
    error = knn_error(points[known], noisy[known], points[asked], noisy[asked], k, memory)
    assert error == pytest.approx(100 * (1 - expected), abs=1e-9)
    assert 5 < error < 60


def test_equal_distances_and_votes():
    assert knn_error([[1.0], [-1.0]], [7, 5], [[0.0]], [7]) == 0
    assert knn_error([[-1.0], [1.0]], [5, 7], [[0.0]], [7]) == 100
    assert knn_error([[1.0], [-2.0]], [7, 5], [[0.0]], [5], 2) == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": np.zeros((5, 2))}, InvalidValueError, "same number of rows, but got 5 and 30"),
        ({"X": np.zeros(30)}, InvalidValueError, r"shape \(rows, columns\)"),
        ({"X": np.full((30, 2), np.nan)}, InvalidValueError, "X must be finite"),
        ({"X": [["a", "b"]] * 30}, InvalidValueError, "X must have numbers in rows of the same length"),
        ({"X": [[1.0], [1.0, 2.0]] * 15}, InvalidValueError, "X must have numbers in rows of the same length"),
        ({"X": np.zeros((30, 2), complex)}, InvalidValueError, "X must have numbers .* complex"),
        ({"n_neighbors": 15}, InvalidValueError, "less than n / 2 = 15, but got 15"),
        ({"n_neighbors": 2.0}, InvalidTypeError, "n_neighbors must be an int"),
        ({"memory": 1e9}, InvalidTypeError, "memory must be an int"),
    ],
)
def test_bad_input(change, error, message):
    rows, points = problem(30)
    with pytest.raises(error, match=message):
        trustworthiness(**{"X": rows, "embedding": points, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference_labels": [0]}, r"labels of the references must have shape \(3,\), but got \(1,\)"),
        ({"labels": [[0]]}, "labels of the queries"),
        ({"queries": [[0.0, 1.0]]}, "same number of columns, but got 1 and 2"),
        ({"n_neighbors": 4}, "at most 3, but got 4"),
        ({"labels": ["0"]}, "both be numbers, or both texts, but got int64 and <U1"),
        ({"reference_labels": [0, np.nan, 1]}, "labels of the references must not be NaN"),
        ({"reference_labels": [0, None, 1]}, r"labels of the references must be numbers or texts \(got object\)"),
        ({"reference_labels": [[0], [1, 2], [3]]}, "labels of the references must be numbers or texts"),
        ({"memory": 0}, "memory must be at least 1"),
    ],
)
def test_bad_input_of_the_error(change, message):
    good = {"references": [[0.0], [1.0], [2.0]], "reference_labels": [0, 1, 2], "queries": [[0.0]], "labels": [0]}
    with pytest.raises(InvalidValueError, match=message):
        knn_error(**{**good, **change})


def test_labels_of_any_kind():
    points = [[0.0], [1.0]]
    for kind in (str, bytes, object, np.int8, float):
        labels = np.array([0, 1]).astype(kind)
        assert knn_error(points, labels, points, labels.tolist()) == 0
