"""The losses against slow ones, and their gradients."""

import math

import numpy as np
import pytest
import torch

import khot
from khot.embed import input_logits, subset_sne_loss, tsne_loss
from khot.errors import InvalidTypeError, InvalidValueError
from tests.embed.problems import clouds

SHAPE = (12, 12)


def problem(n: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and an embedding."""
    rows = torch.from_numpy(clouds(n)[0]).double()
    return input_logits(rows, 4), torch.randn(n, 2, generator=seeded(), dtype=torch.float64)


def seeded(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise_of(samples: int, generator: torch.Generator) -> np.ndarray:
    return khot.gumbel_keys(torch.zeros(samples, *SHAPE).double(), generator).numpy()


def drawn(logits: np.ndarray, k: int, samples: int, sign: int, generator: torch.Generator) -> np.ndarray:
    """The neighbours (samples, n, k) that the loss draws from the same seed."""
    if k == 1 and sign == 1:
        weights = torch.from_numpy(logits).softmax(-1)
        found = torch.multinomial(weights, max(samples, 2), replacement=True, generator=generator)
        return found.T[:samples, :, None].numpy()
    return np.argsort(-(logits + sign * noise_of(samples, generator)), axis=-1)[..., :k]


def slow_loss(logits, points, k, temperature, bias, samples, both=True, sign=1, likely=lambda square: -square):
    """Algorithm and equation of the paper, a point and a neighbour at a time."""
    generator = seeded()
    sequences = drawn(logits, k, samples, sign, generator)
    relaxed_noise = noise_of(samples, generator) if both else np.zeros((samples, *SHAPE))
    n, total = len(points), 0.0
    for s in range(samples):
        for i in range(n):
            others = [j for j in range(n) if j != i]
            alpha = {j: likely(sum((points[i] - points[j]) ** 2)) + sign * relaxed_noise[s, i, j] for j in others}
            for place, neighbor in enumerate(sequences[s, i]):
                top = max(alpha.values())
                weights = {j: math.exp((value - top) / temperature) for j, value in alpha.items()}
                share = {j: weight / sum(weights.values()) for j, weight in weights.items()}
                total -= math.exp(-place) * math.log(share[neighbor] + bias)
                alpha = {j: value + math.log(max(1 - share[j], 1e-300)) for j, value in alpha.items()}
    return total / (n * samples)


@pytest.mark.parametrize(("k", "temperature", "bias"), [(1, 0.1, 1e-8), (1, 1.0, 0.0), (3, 0.7, 1e-3), (11, 2.0, 1e-8)])
@pytest.mark.parametrize(("samples", "noise"), [(1, "both"), (3, "input")])
def test_subset_loss_against_a_loop(k, temperature, bias, samples, noise):
    logits, points = problem()
    options = {"bias": bias, "samples": samples, "noise": noise}
    loss = subset_sne_loss(logits, points, k, temperature, **options, generator=seeded())
    expected = slow_loss(logits.numpy(), points.numpy(), k, temperature, bias, samples, noise == "both")
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bias", [0.0, 1e-3])
@pytest.mark.parametrize(("samples", "noise"), [(1, "both"), (3, "input")])
def test_mutual_neighbours_against_a_loop(bias, samples, noise):
    """The mean of how likely the neighbour is for the point, and the point for the neighbour."""
    logits, points = problem()
    generator = seeded()
    chosen = drawn(logits.numpy(), 1, samples, 1, generator)[..., 0]
    moved = noise_of(samples, generator) if noise == "both" else np.zeros((samples, *SHAPE))
    keys = -((points[:, None] - points) ** 2).sum(-1).numpy() + moved
    keys[:, range(len(points)), range(len(points))] = -np.inf
    shares = np.exp(keys / 0.8) / np.exp(keys / 0.8).sum(-1, keepdims=True)
    pairs = [(s, i, chosen[s, i]) for s in range(samples) for i in range(len(points))]
    expected = -np.mean([math.log(shares[s, i, j] + bias) + math.log(shares[s, j, i] + bias) for s, i, j in pairs]) / 2
    options = {"bias": bias, "samples": samples, "noise": noise, "mutual": True}
    loss = subset_sne_loss(logits, points, 1, 0.8, **options, generator=seeded())
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("degrees", [1.0, 7.0])
def test_subset_loss_with_the_student_density(degrees):
    def likely(square: float) -> float:
        return -(degrees + 1) / 2 * math.log(1 + square / degrees)

    logits, points = problem()
    loss = subset_sne_loss(logits, points, 2, 0.5, alpha=degrees, generator=seeded())
    expected = slow_loss(logits.numpy(), points.numpy(), 2, 0.5, 1e-8, 1, likely=likely)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


def test_a_single_neighbour_follows_the_softmax():
    """The mean over many draws is the cross-entropy of the two softmaxes, within four standard errors."""
    logits, points = problem()
    options = {"temperature": 1.0, "bias": 0.0, "noise": "input"}
    generator = seeded()
    losses = torch.stack(
        [subset_sne_loss(logits, points, samples=50, generator=generator, **options) for _ in range(400)]
    )
    likely = (-torch.cdist(points, points).square()).fill_diagonal_(-math.inf).log_softmax(1).fill_diagonal_(0)
    expected = -(logits.softmax(1) * likely).sum(1).mean()
    assert abs(losses.mean() - expected) < 4 * losses.std() / 20


def test_a_row_without_neighbours():
    logits, points = problem()
    logits[3] = -math.inf
    with pytest.raises(InvalidValueError, match="a row has none"):
        subset_sne_loss(logits, points)


def test_reversed_noise():
    logits, points = problem()
    loss = subset_sne_loss(logits, points, 2, 0.5, reversed_noise=True, generator=seeded())
    assert loss.item() == pytest.approx(slow_loss(logits.numpy(), points.numpy(), 2, 0.5, 1e-8, 1, sign=-1), rel=1e-9)


@pytest.mark.parametrize(
    "options",
    [{}, {"k": 3}, {"noise": "input"}, {"bias": 0.0}, {"reversed_noise": True}, {"alpha": 1.0}, {"mutual": True}],
)
def test_subset_gradients(options):
    logits, points = problem()

    def loss(points):
        return subset_sne_loss(logits, points, temperature=0.8, samples=2, generator=seeded(), **options)

    assert torch.autograd.gradcheck(loss, (points.requires_grad_(),), atol=1e-6)
    loss(points).backward()
    assert points.grad.norm() > 1e-3


def test_far_off_neighbours():
    """The bias bounds the loss; without it the loss grows on, and its gradient leads back."""
    logits, points = problem()
    far = points * 1e3
    assert subset_sne_loss(logits, far, temperature=0.1).item() <= -math.log(1e-8) + 1e-9
    moved = far.requires_grad_()
    loss = subset_sne_loss(logits, moved, temperature=0.1, bias=0.0)
    assert loss.item() > 1e5
    loss.backward()
    assert moved.grad.isfinite().all()
    assert moved.grad.norm() > 1


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("temperature", "expected"), [(1e-300, 0.0), (1e-39, 0.0), (1e300, math.log(3))])
def test_extreme_temperatures(k, temperature, expected):
    """Neighbours that are the same in both spaces, in float32."""
    points = torch.tensor([[0.0], [1.0], [50.0], [51.0]], requires_grad=True)
    loss = subset_sne_loss(input_logits(points), points, k, temperature, noise="input")
    assert loss.item() == pytest.approx(expected * (1 + (k - 1) / math.e), abs=1e-5)
    loss.backward()
    assert points.grad.isfinite().all()


def test_large_logits_leave_the_noise_alone():
    """A constant of a row is no matter, even one that would swallow the noise in float32."""
    logits, points = (part.float() for part in problem())
    one, two = (subset_sne_loss(logits + c, points, generator=seeded()) for c in (0.0, -(2.0**24)))
    assert one.item() == pytest.approx(two.item(), rel=0.5)
    assert torch.equal(
        subset_sne_loss(logits.round() - 2.0**20, points, generator=seeded()),
        subset_sne_loss(logits.round(), points, generator=seeded()),
    )


@pytest.mark.parametrize("alpha", [1.0, 0.5, 9.0])
def test_student_loss_against_a_loop(alpha):
    logits, points = problem()
    n = len(points)
    given = np.exp(logits.numpy())
    given /= given.sum(1, keepdims=True)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    near = {(i, j): (1 + float(((points[i] - points[j]) ** 2).sum()) / alpha) ** (-(alpha + 1) / 2) for i, j in pairs}
    expected = 0.0
    for i, j in pairs:
        p = (given[i, j] + given[j, i]) / (2 * n)
        expected += p * math.log(p / (near[i, j] / sum(near.values())))
    assert tsne_loss(logits, points, alpha).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32"), ("float32", "bfloat16")])
def test_student_loss_of_two_dtypes(dtypes):
    """It is computed in the wider of the two, at least in float32."""
    logits, points = (part.to(getattr(torch, dtype)) for part, dtype in zip(problem(), dtypes, strict=True))
    loss = tsne_loss(logits, points.requires_grad_())
    assert loss.dtype == torch.promote_types(logits.dtype, points.dtype)
    assert loss.item() == pytest.approx(tsne_loss(logits.double(), points.detach().double()).item(), rel=1e-5)
    loss.backward()
    assert points.grad.isfinite().all()


def test_student_gradients():
    logits, points = problem()
    assert torch.autograd.gradcheck(lambda z: tsne_loss(logits, z, 0.7), (points.requires_grad_(),))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"embeddings": torch.zeros(11, 2)}, InvalidValueError, r"shape \(11, 11\), but got \(12, 12\)"),
        ({"embeddings": torch.zeros(12)}, InvalidValueError, r"shape \(n, d\)"),
        ({"embeddings": torch.full((12, 2), torch.nan)}, InvalidValueError, "finite"),
        ({"logits": torch.zeros(SHAPE)}, InvalidValueError, "-inf on the diagonal"),
        ({"logits": torch.full(SHAPE, torch.nan)}, InvalidValueError, "finite"),
        ({"k": 12}, InvalidValueError, "k must be at most 11, one less than the rows of a batch, but got 12"),
        ({"k": 0}, InvalidValueError, "at least 1"),
        ({"temperature": 0.0}, InvalidValueError, "positive"),
        ({"bias": -1.0}, InvalidValueError, "bias must be positive"),
        ({"bias": 0.0, "k": 2}, InvalidValueError, "bias can be 0 only for k = 1"),
        ({"mutual": True, "k": 2}, InvalidValueError, "mutual is only for k = 1, but got 2: pass k=1"),
        ({"noise": "none"}, InvalidValueError, "one of both, input"),
        ({"alpha": -1.0}, InvalidValueError, "alpha must be positive"),
        ({"samples": 1.5}, InvalidTypeError, "samples must be an int"),
        ({"generator": 3}, InvalidTypeError, "generator must be a torch.Generator"),
        ({"embeddings": torch.full((12, 2), 1e20)}, InvalidValueError, "finite distances"),
    ],
)
def test_bad_input_of_the_subset_loss(change, error, message):
    logits, points = problem()
    with pytest.raises(error, match=message):
        subset_sne_loss(**{"logits": logits, "embeddings": points, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"embeddings": torch.zeros(11, 2)}, r"shape \(11, 11\)"),
        ({"embeddings": torch.full((12, 2), torch.nan)}, "finite distances"),
        ({"logits": torch.zeros(SHAPE)}, "-inf on the diagonal"),
    ],
)
def test_bad_input_of_the_student_loss(change, message):
    logits, points = problem()
    with pytest.raises(InvalidValueError, match=message):
        tsne_loss(**{"logits": logits, "embeddings": points, **change})
