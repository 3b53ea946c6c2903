"""The loss against a slow one, and its gradients."""

import numpy as np
import pytest
import torch

import khot
from khot.errors import InvalidTypeError, InvalidValueError
from khot.neighbors import neighbor_logits, neighbor_loss

RELAXATIONS = [khot.successive_softmax, khot.neuralsort]


def problem(queries: int = 6, candidates: int = 8, dtype=torch.float64):
    noise = torch.Generator().manual_seed(0)
    q, c = (torch.randn(n, 3, generator=noise, dtype=dtype) for n in (queries, candidates))
    return q, c, torch.arange(queries) % 3, torch.arange(candidates) % 3


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def textbook(keys: np.ndarray, k: int, temperature: float) -> np.ndarray:
    """The successive softmax of one row, as in the paper."""
    total = np.zeros_like(keys)
    for _ in range(k):
        weights = np.exp((keys - keys.max()) / temperature)
        share = weights / weights.sum()
        total += share
        keys = keys + np.log(np.maximum(1 - share, 1e-300))
    return total


def published_neuralsort(keys: np.ndarray, k: int, temperature: float) -> np.ndarray:
    total, n = np.zeros_like(keys), len(keys)
    sums = np.abs(keys[:, None] - keys[None]).sum(1)
    for j in range(1, k + 1):
        logits = ((n + 1 - 2 * j) * keys - sums) / temperature
        weights = np.exp(logits - logits.max())
        total += weights / weights.sum()
    return total


@pytest.mark.parametrize(
    ("relaxation", "oracle"), [(khot.successive_softmax, textbook), (khot.neuralsort, published_neuralsort)]
)
def test_against_loops(relaxation, oracle):
    queries, candidates, query_labels, candidate_labels = problem()
    k, temperature = 3, 1.5
    loss = neighbor_loss(
        queries, candidates, query_labels, candidate_labels, k, temperature, relaxation=relaxation, generator=seeded()
    )
    logits = np.array([[-sum((q - c) ** 2) for c in candidates.numpy()] for q in queries.numpy()])
    # The noise is added to what is left below the largest logit of the row; the same seed draws the same.
    noise = khot.gumbel_keys(torch.zeros(logits.shape, dtype=torch.float64), seeded()).numpy()
    total = 0.0
    for i, row in enumerate(logits + noise):
        chosen = oracle(row, k, temperature)
        total -= sum(chosen[j] for j in range(len(row)) if candidate_labels[j] == query_labels[i]) / k
    assert loss.item() == pytest.approx(total / len(queries), abs=1e-9)


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_gradients(relaxation):
    queries, candidates, query_labels, candidate_labels = problem(3, 5)

    def loss(q, c):
        return neighbor_loss(q, c, query_labels, candidate_labels, 2, 1.0, relaxation=relaxation, generator=seeded())

    assert torch.autograd.gradcheck(loss, (queries.requires_grad_(), candidates.requires_grad_()), atol=1e-4)
    loss(queries, candidates).backward()
    assert queries.grad.norm() > 1e-3
    assert candidates.grad.norm() > 1e-3


def test_right_and_wrong_neighbours():
    points, labels = torch.tensor([[0.0], [1.0], [50.0], [51.0]]), torch.tensor([0, 0, 1, 1])
    itself = torch.eye(4, dtype=torch.bool)
    assert neighbor_loss(points, points, labels, labels, 1, 0.1, absent=itself).item() == pytest.approx(-1)
    crossed = torch.tensor([0, 1, 0, 1])
    assert neighbor_loss(points, points, crossed, crossed, 1, 0.1, absent=itself).item() == pytest.approx(0, abs=1e-6)
    half = neighbor_loss(points, points, crossed, crossed, 2, 0.1, generator=seeded())
    assert half.item() == pytest.approx(-0.5, abs=0.02)


def test_absent_candidates_are_not_chosen():
    logits = neighbor_logits(torch.zeros(2, 1), torch.zeros(2, 1), torch.eye(2, dtype=torch.bool))
    assert torch.equal(logits, torch.tensor([[-torch.inf, 0.0], [0.0, -torch.inf]]))


def test_half_precision_far_from_the_origin():
    points = torch.tensor([[1000.0], [1001.0], [1003.0]], dtype=torch.float16)
    assert neighbor_logits(points, points)[0].tolist() == pytest.approx([0.0, -1.0, -9.0], abs=1e-3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query_embeddings": torch.zeros(6, 2)}, InvalidValueError, "same number of features"),
        ({"query_embeddings": torch.zeros(3)}, InvalidValueError, r"shape \(rows, features\)"),
        ({"query_embeddings": torch.full((6, 3), torch.nan)}, InvalidValueError, "finite"),
        ({"query_labels": torch.zeros(5)}, InvalidValueError, r"one label for each query, shape \(6,\)"),
        ({"candidate_labels": [1] * 8}, InvalidTypeError, "candidate_labels must be"),
        ({"k": 0}, InvalidValueError, "k must be at least 1"),
        ({"k": 9}, InvalidValueError, "number of items, 8"),
        ({"temperature": 0.0}, InvalidValueError, "positive"),
        ({"absent": torch.eye(6, dtype=torch.bool)}, InvalidValueError, r"shape \(6, 8\)"),
        ({"absent": torch.eye(6)}, InvalidTypeError, "bool tensor"),
        ({"relaxation": "softmax"}, InvalidTypeError, "relaxation must be a function"),
    ],
)
def test_bad_input(change, error, message):
    names = ["query_embeddings", "candidate_embeddings", "query_labels", "candidate_labels"]
    arguments = dict(zip(names, problem(), strict=True)) | {"k": 2, "temperature": 1.0} | change
    with pytest.raises(error, match=message):
        neighbor_loss(**arguments)
