"""Neighbour weights against scikit-learn's calibration and loops."""

import numpy as np
import pytest
import torch
from sklearn.manifold._utils import _binary_search_perplexity

from khot import _jit
from khot.embed import input_logits
from khot.errors import InvalidTypeError, InvalidValueError
from tests.embed.problems import clouds


@pytest.fixture(autouse=True, params=["kernel", "torch"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_jit, "AVAILABLE", request.param == "kernel")


def rows(n: int = 60, dtype=torch.float64) -> torch.Tensor:
    return torch.from_numpy(clouds(n)[0]).to(dtype)


def perplexities(logits: torch.Tensor) -> np.ndarray:
    """By a loop over the rows."""
    found = []
    for row in logits.double().numpy():
        weights = np.exp(row - row.max())
        weights /= weights.sum()
        weights = weights[weights > 0]
        found.append(np.exp(-(weights * np.log(weights)).sum()))
    return np.array(found)


def test_raw_logits_are_distances():
    points = rows()
    logits = input_logits(points)
    for i, j in [(0, 1), (5, 40), (59, 3)]:
        assert logits[i, j].item() == pytest.approx(-float(((points[i] - points[j]) ** 2).sum()), rel=1e-12)
    assert (logits.diagonal() == -torch.inf).all()


@pytest.mark.parametrize("perplexity", [1.5, 5, 30, 57])
@pytest.mark.parametrize("scale", [1e-8, 1, 1e8])
def test_perplexity(perplexity: float, scale: float):
    assert perplexities(input_logits(rows() * scale, perplexity)) == pytest.approx(perplexity, rel=2e-5)


@pytest.mark.parametrize("perplexity", [5, 30])
def test_against_scikit_learn(perplexity: float):
    points = rows(200)
    squares = ((points[:, None] - points[None]) ** 2).sum(-1).float().numpy()
    expected = _binary_search_perplexity(squares, perplexity, 0)
    assert np.allclose(input_logits(points, perplexity).softmax(1), expected, atol=2e-5)


def test_in_single_precision():
    assert perplexities(input_logits(rows(dtype=torch.float32), 12)) == pytest.approx(12, rel=2e-5)
    assert input_logits(rows(dtype=torch.float16)).dtype == torch.float32


def test_an_outlier_and_copies():
    points = rows()
    points[7] = 1e6
    points[20:40] = points[20]
    found = perplexities(input_logits(points, 5))
    assert found[20:40] == pytest.approx(19)  # each has 19 neighbours at distance 0
    others = np.r_[0:20, 40:60]
    assert found[others] == pytest.approx(5, rel=2e-5)


def test_copies_before_other_rows():
    points = rows(300)
    points[:200] = 1e3
    found = perplexities(input_logits(points, 5))
    assert found[:200] == pytest.approx(199)
    assert found[200:] == pytest.approx(5, rel=2e-5)


def test_digits_that_cancel():
    """In float32, where a row far away leaves none of the digits of a distance between others."""
    points = rows(dtype=torch.float32)
    points[7] = 1e5
    exact = -((points[:, None].double() - points[None].double()) ** 2).sum(-1)
    logits = input_logits(points).fill_diagonal_(0)
    assert torch.allclose(logits.double(), exact, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-157, 1e-120, 1e150])
def test_scales_near_the_end_of_the_range(scale: float):
    assert perplexities(input_logits(rows(400) * scale, 5)) == pytest.approx(5, rel=1e-3)


def test_distances_of_all_sizes():
    points = 10.0 ** torch.linspace(-2, 4, 40).double()[:, None]
    assert perplexities(input_logits(points, 1.5))[1:-1] == pytest.approx(1.5, rel=2e-5)


def test_all_rows_equal():
    assert perplexities(input_logits(torch.ones(6, 3), 2)) == pytest.approx(5)


def test_the_number_of_threads_makes_no_difference():
    points = rows(1000, torch.float32)
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append(input_logits(points, 7))
    assert all(torch.equal(one, found[0]) for one in found)


@pytest.mark.parametrize(
    ("points", "perplexity", "error", "message"),
    [
        (torch.zeros(1, 3), None, InvalidValueError, "at least two rows"),
        (torch.zeros(4), None, InvalidValueError, r"shape \(n, d\)"),
        (torch.full((4, 3), torch.nan), None, InvalidValueError, "finite"),
        (torch.full((4, 3), 1e30) * torch.arange(4.0)[:, None], None, InvalidValueError, "scale them"),
        (torch.zeros(4, 3), 4, InvalidValueError, "between 1 and 3, one less than the rows of a batch, but got 4"),
        (torch.zeros(4, 3), 0.5, InvalidValueError, "between 1 and"),
        (torch.zeros(4, 3), "auto", InvalidTypeError, "perplexity must be a number"),
        ([[0.0], [1.0]], None, InvalidTypeError, "torch.Tensor"),
    ],
)
def test_bad_input(points, perplexity, error, message):
    with pytest.raises(error, match=message):
        input_logits(points, perplexity)
