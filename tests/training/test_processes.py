"""Two processes do what one does."""

import pickle
from pathlib import Path

import pytest
import torch

from khot.errors import DivergedError, InvalidValueError
from khot.training import AdamW, Settings, fit
from khot.training.processes import agree
from tests.training import problems
from tests.training.problems import data, network

INF = float("inf")
SETTINGS = Settings(
    epochs=4, batch_size=10, optimizer=AdamW(), learning_rate=0.01, clip_norm=1.0, averaging=0.5, monitor="error"
)


def train(loss, folder: Path, **options):
    module = network(dropout=0.0)
    return fit(module, loss, data(), SETTINGS, validate=problems.error_rate, folder=folder, **options), module


def assert_close(left, right) -> None:
    for one, other in zip(left[0].history, right[0].history, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-5)
        assert one["validation"]["error"] == pytest.approx(other["validation"]["error"], abs=1e-5)
    for one, other in zip(left[1].parameters(), right[1].parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_same_loss_curve(tmp_path: Path):
    one = train(problems.among_all, tmp_path / "one")
    two = train(problems.among_all, tmp_path / "two", devices=2)
    assert one[0].best["loss"] < 0.9 * one[0].history[0]["loss"]
    assert_close(one, two)


def no_numbers(module: torch.nn.Module) -> dict[str, float]:
    """A validation, in the first process alone, without the number that is asked for."""
    return {"other": 0.0}


def test_the_error_of_one_process_stops_both(tmp_path: Path):
    loss = problems.NoteAtExit(tmp_path / "notes")
    with pytest.raises(InvalidValueError, match="must return the monitored number 'error'"):
        fit(network(), loss, data(), SETTINGS, validate=no_numbers, folder=tmp_path / "run", devices=2)
    assert {note.read_text() for note in loss.folder.iterdir()} == {"the group has ended"}


def test_the_group_ends_before_the_processes(tmp_path: Path):
    loss = problems.NoteAtExit(tmp_path / "notes")
    train(loss, tmp_path / "run", devices=2)
    assert [note.read_text() for note in loss.folder.iterdir()] == 2 * ["the group has ended"]


def test_control_c_in_one_process_stops_both(tmp_path: Path):
    loss = problems.interrupted
    with pytest.raises(KeyboardInterrupt, match=r"step-000000006.*resume=True"):
        train(loss, tmp_path / "stopped", devices=2)
    one = train(loss, tmp_path / "one")
    assert_close(one, train(loss, tmp_path / "stopped", resume=True))


class TwoProcesses:
    """A replacement for Fabric, with the numbers that the other process reports."""

    world_size = 2

    def __init__(self, loss: float, stop: float) -> None:
        self.other = torch.tensor([loss, stop])

    def all_reduce(self, tensor: torch.Tensor, reduce_op: str) -> torch.Tensor:
        assert reduce_op == "mean"
        return (tensor + self.other) / 2


@pytest.mark.parametrize(
    ("mine", "other", "result"),
    [
        ((1.0, False), (3.0, False), (2.0, False)),
        ((1.0, True), (3.0, False), (2.0, True)),
        ((1.0, False), (3.0, True), (2.0, True)),
        ((1.0, False), (INF, False), (INF, False)),
    ],
)
def test_processes_agree(mine, other, result):
    assert agree(TwoProcesses(*other), torch.tensor(mine[0]), mine[1]) == result


def test_what_stops_a_process_reaches_its_parent():
    for stop in (DivergedError("the loss is nan", "step-3"), KeyboardInterrupt("resume=True")):
        there = pickle.loads(pickle.dumps(stop))
        assert (type(there), str(there)) == (type(stop), str(stop))
