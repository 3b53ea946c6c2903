"""What the loop gives to the loss, and what it makes of the losses and validations."""

import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

from khot.errors import DivergedError
from khot.schedules import Linear
from khot.training import SGD, Settings, Step, fit
from tests.training.problems import EVERY_STEP, data, network, squared_error, train

NAN, INF = float("nan"), float("inf")


def scripted(scores: list[float], weights: list):
    """A validation with given numbers, which keeps the weights that it saw."""

    def validate(module: nn.Module) -> dict[str, float]:
        assert not module.training
        assert not torch.is_grad_enabled()
        weights.append(module[0].weight.clone())
        return {"score": scores[len(weights) - 1], "other": 0.0}

    return validate


@pytest.mark.parametrize(
    ("scores", "options", "best", "epochs"),
    [
        ([3, 1, 2, 4], {}, 1, 4),
        ([3, 1, 2, 4], {"maximize": True}, 3, 4),
        ([3, 1, 2, 4, 0], {"patience": 2}, 1, 4),
        ([3, 1, 1, 0.5, 2, 0, 0], {"patience": 2}, 5, 7),
        ([1, 1, 2, 0], {"patience": 1}, 1, 3),  # the training loss falls
        ([NAN, 3, INF, 2, NAN], {}, 3, 5),
        ([NAN, NAN, 1], {"patience": 2}, None, 2),
    ],
)
def test_best_epoch_and_early_stopping(tmp_path: Path, scores, options, best, epochs):
    seen = []
    settings = Settings(epochs=len(scores), batch_size=25, monitor="score", learning_rate=0.01, **options)
    module = network()
    run = fit(module, squared_error, data(), settings, validate=scripted(scores, seen), folder=tmp_path)
    assert len(run.history) == len(seen) == epochs
    assert run.best == run.history[-1 if best is None else best]
    assert torch.equal(module[0].weight, seen[-1 if best is None else best])
    assert not module.training
    assert not torch.equal(seen[0], seen[1])
    again = fit(network(), squared_error, data(), settings, validate=scripted(scores, []), folder=tmp_path, resume=True)
    assert again.history == run.history


def test_of_equal_validations_the_training_loss_tells_the_best(tmp_path: Path):
    settings = Settings(epochs=6, batch_size=25, monitor="score", learning_rate=0.4)  # too large to fall for ever
    run = fit(network(), squared_error, data(), settings, validate=scripted([1.0] * 6, []), folder=tmp_path)
    assert run.best["loss"] == min(record["loss"] for record in run.history)


def test_verbose_tells_every_epoch(tmp_path: Path, capsys: pytest.CaptureFixture):
    settings = Settings(epochs=2, batch_size=25, monitor="score")
    scores = scripted([0.5, NAN], [])
    run = fit(network(), squared_error, data(), settings, validate=scores, folder=tmp_path, verbose=True)
    losses = [f"{record['loss']:.4f}" for record in run.history]
    assert capsys.readouterr().out.splitlines() == [
        f"epoch 1 of 2: loss {losses[0]}, validation score 0.5000, validation other 0.0000",
        f"epoch 2 of 2: loss {losses[1]}, validation score not finite, validation other 0.0000",
    ]


def test_of_many_epochs_some_are_told(tmp_path: Path, capsys: pytest.CaptureFixture):
    fit(network(), squared_error, data(), Settings(epochs=60, batch_size=50), folder=tmp_path, verbose=True)
    printed = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert printed == [f"epoch {epoch} of 60" for epoch in range(3, 61, 3)]


def test_without_validation_the_training_loss_tells_the_best(tmp_path: Path):
    settings = Settings(epochs=4, batch_size=25, optimizer=SGD(), learning_rate=lambda step: 0.1 if step < 4 else 3.0)
    module = network(0.0)
    run = fit(module, squared_error, data(), settings, folder=tmp_path)
    losses = [record["loss"] for record in run.history]
    assert run.best["loss"] == min(losses)
    assert run.best["epoch"] < 3
    assert "validation" not in run.best


def test_the_running_mean_of_the_weights_is_validated_and_kept(tmp_path: Path):
    weights, validated = [], []

    def recorded(module, batch, step):
        weights.append(module.module[0].weight.detach().clone())
        return squared_error(module, batch, step)

    module = nn.Sequential(*network(), nn.BatchNorm1d(1))
    settings = Settings(epochs=30, batch_size=25, monitor="score", learning_rate=0.01, averaging=0.8)
    scores = [30.0 - epoch for epoch in range(30)]
    run = fit(module, recorded, data(), settings, validate=scripted(scores, validated), folder=tmp_path)
    mean = weights[0]
    for step, weight in enumerate(weights[1:]):  # the weights after each step, but the last
        share = max(0.2, 10 / (10 + step))
        mean = (1 - share) * mean + share * weight
        if step % 2:
            assert torch.allclose(validated[step // 2], mean, atol=1e-6)
    assert torch.equal(module[0].weight, validated[-1])
    assert run.best["epoch"] == 29
    assert (module[0].weight - weights[-1]).abs().max() > 1e-3
    assert module[-1].num_batches_tracked == 60


def test_history_is_the_mean_of_the_losses(tmp_path: Path):
    values = []

    def recorded(module, batch, step):
        loss = squared_error(module, batch, step)
        values.append(loss.item())
        return loss

    run = fit(network(), recorded, data(), Settings(epochs=3, batch_size=10), folder=tmp_path)
    means = np.array(values).reshape(3, 5).mean(1)
    assert [record["loss"] for record in run.history] == pytest.approx(means, abs=1e-7)
    assert [record["epoch"] for record in run.history] == [0, 1, 2]
    assert all(0 < record["seconds"] < 10 for record in run.history)
    assert all(0 < record["processor_seconds"] < 20 for record in run.history)
    assert json.loads((tmp_path / "history.json").read_text()) == {
        "best_epoch": run.best["epoch"],
        "epochs": run.history,
    }


def test_it_is_plain_gradient_descent(tmp_path: Path):
    """Against a loop written out here."""
    x, y = data()
    module, by_hand = network(0.0), network(0.0)
    rows = []

    def recorded(module, batch, step: Step):
        rows.append(step.rows)
        assert torch.equal(batch[0], x[step.rows])
        return squared_error(module, batch, step)

    rate = Linear(0.3, 0.01, steps=10)
    settings = Settings(epochs=2, batch_size=10, optimizer=SGD(), learning_rate=rate, clip_norm=0.2)
    fit(module, recorded, (x, y), settings, folder=tmp_path)
    for number, some in enumerate(rows):
        grads = torch.autograd.grad((by_hand(x[some]) - y[some]).square().mean(), list(by_hand.parameters()))
        scale = min(1.0, 0.2 / math.sqrt(sum(grad.square().sum().item() for grad in grads)))
        with torch.no_grad():
            for parameter, grad in zip(by_hand.parameters(), grads, strict=True):
                parameter -= rate(number) * scale * grad
    for left, right in zip(module.parameters(), by_hand.parameters(), strict=True):
        assert torch.allclose(left, right, atol=1e-6)


def test_steps(tmp_path: Path):
    steps, noise = [], []

    def recorded(module, batch, step: Step):
        steps.append(step)
        noise.append((torch.rand(3, generator=step.generator), torch.rand(3)))
        return squared_error(module, batch, step)

    before = torch.get_rng_state()
    settings = Settings(epochs=2, batch_size=16, temperature=Linear(2.0, 1.0, steps=4))
    fit(network(), recorded, data(), settings, folder=tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert [step.number for step in steps] == list(range(6))
    assert [step.epoch for step in steps] == [0, 0, 0, 1, 1, 1]
    assert [step.temperature for step in steps] == [2.0, 1.75, 1.5, 1.25, 1.0, 1.0]
    epochs = [torch.cat([step.rows for step in steps[i : i + 3]]) for i in (0, 3)]
    assert all(len(rows.unique()) == 48 for rows in epochs)
    assert not torch.equal(*epochs)
    assert len({tuple(values.tolist()) for pair in noise for values in pair}) == 12


@pytest.mark.parametrize("form", ["tensor", "array", "sparse", "dict", "list"])
def test_forms_of_data(tmp_path: Path, form: str):
    x, y = data()
    forms = {"tensor": x, "array": x.numpy(), "sparse": scipy.sparse.csr_array(x.numpy())}
    forms |= {"dict": {"x": x, "y": y.numpy()}, "list": [x.numpy(), y]}
    pick = {"dict": lambda b: b["x"], "list": lambda b: b[0]}.get(form, lambda b: b)
    seen = []

    def loss(module, batch, step):
        seen.append(torch.equal(pick(batch), x[step.rows]))
        return module(pick(batch)).square().mean()

    fit(network(), loss, forms[form], Settings(epochs=1, batch_size=10), folder=tmp_path)
    assert seen == [True] * 5


@pytest.mark.parametrize("bad", [NAN, INF])
def test_loss_that_is_not_finite(tmp_path: Path, bad: float):
    def loss(module, batch, step):
        return squared_error(module, batch, step) * (bad if step.number == 11 else 1.0)

    message = (
        rf"the loss is {bad} at step 11; the last good checkpoint is .*step-000000011: try a smaller learning_rate"
    )
    with pytest.raises(DivergedError, match=message):
        train(tmp_path, loss=loss, checkpoint_seconds=EVERY_STEP)
    with pytest.raises(DivergedError, match=message):  # the checkpoint is good up to that step
        train(tmp_path, loss=loss, resume=True)


class WithSpare(nn.Module):
    """A network with a parameter of which it has no need."""

    def __init__(self) -> None:
        super().__init__()
        self.network, self.spare = network(), nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.network(x)


@pytest.mark.parametrize("at", [9, 15])
def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, at: int):
    """The losses are finite, but at one step the gradient is not."""

    def loss(module, batch, step):
        value = squared_error(module, batch, step)
        return value + (0 * module.spare).sqrt() if step.number == at else value

    settings = Settings(epochs=3, batch_size=6)
    with pytest.raises(DivergedError, match=rf"weights are not finite after step 15; .*step-{at:09d}"):
        fit(WithSpare(), loss, data(), settings, folder=tmp_path, checkpoint_seconds=EVERY_STEP)


def test_bar_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    train(tmp_path / "pipe")
    assert capsys.readouterr() == ("", "")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    train(tmp_path / "terminal")
    assert "24/24" in terminal.getvalue()
    assert "epoch 3/3, loss" in terminal.getvalue()


def test_mixed_precision(tmp_path: Path):
    dtypes = set()

    class Watched(nn.Linear):
        def forward(self, x):
            dtypes.add(super().forward(x).dtype)
            return super().forward(x)

    settings = Settings(epochs=6, batch_size=10, learning_rate=0.1)
    run = fit(Watched(5, 1), squared_error, data(), settings, folder=tmp_path, precision="bf16-mixed")
    assert dtypes == {torch.bfloat16}
    assert run.best["loss"] < 0.9 * run.history[0]["loss"]
