"""A run that is killed or interrupted and resumed ends as one that was not, bit for bit."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from khot import training
from khot.errors import RunFolderError
from tests.training import problems
from tests.training.problems import EVERY_STEP, STEPS, same, train


class CrashError(Exception):
    pass


def breaking_at(step_number: int, action):
    """`problems.noisy`, with an accident at one step; it prints as any other function of that name."""

    def noisy(module, batch, step):
        if step.number == step_number:
            action()
        return problems.noisy(module, batch, step)

    noisy.__qualname__ = "noisy"
    return noisy


def crash() -> None:
    raise CrashError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The training that nothing has happened to."""
    return train(tmp_path_factory.mktemp("whole") / "run")


def test_the_training_has_noise_and_learns(whole, tmp_path: Path):
    run, _ = whole
    assert run.best["validation"]["error"] < 0.95 * run.history[0]["validation"]["error"]
    again = train(tmp_path / "again")
    assert same(whole, again)
    assert not same(
        whole, train(tmp_path / "other", settings=problems.Settings(**{**vars(problems.SETTINGS), "random_state": 4}))
    )


@pytest.mark.parametrize("steps", [[1], [7], [8], [9, 10], [13, 20, 23], [0]])
def test_crashes(whole, tmp_path: Path, steps: list[int]):
    for step in steps:
        with pytest.raises(CrashError):
            train(tmp_path, loss=breaking_at(step, crash), resume=True, checkpoint_seconds=EVERY_STEP)
        torch.manual_seed(random.randrange(1000))
    assert same(whole, train(tmp_path, resume=True))


def test_crash_between_checkpoints(whole, tmp_path: Path):
    with pytest.raises(CrashError):
        train(tmp_path, loss=breaking_at(13, crash), checkpoint_seconds=1e9)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000008"]
    assert same(whole, train(tmp_path, resume=True))


def test_crash_after_the_best_epoch(tmp_path: Path):
    settings = problems.Settings(**{**vars(problems.SETTINGS), "monitor": "noise"})  # so that any epoch may be the best
    whole = train(tmp_path / "whole", settings=settings)
    assert whole[0].best["epoch"] < 2
    with pytest.raises(CrashError):
        train(tmp_path / "run", settings=settings, loss=breaking_at(20, crash), checkpoint_seconds=EVERY_STEP)
    assert same(whole, train(tmp_path / "run", settings=settings, resume=True))


@pytest.mark.parametrize("name", ["SGD", "Adam", "momentum", "RMSprop", "own"])
def test_optimizers(tmp_path: Path, name: str):
    optimizer = {
        "SGD": training.SGD(),
        "Adam": training.Adam(weight_decay=0.1),
        "momentum": training.SGD(momentum=0.9, nesterov=True),
        "RMSprop": training.RMSprop(weight_decay=0.1),
        "own": torch.optim.Adagrad,
    }[name]
    settings = problems.Settings(**{**vars(problems.SETTINGS), "optimizer": optimizer})
    whole = train(tmp_path / "whole", settings=settings)
    with pytest.raises(CrashError):
        train(tmp_path / "run", settings=settings, loss=breaking_at(11, crash), checkpoint_seconds=EVERY_STEP)
    assert same(whole, train(tmp_path / "run", settings=settings, resume=True))


def channels_last() -> torch.nn.Module:
    """Network of images, whose weights have another order in memory than in a checkpoint."""
    torch.manual_seed(1)
    layers = [torch.nn.Conv2d(2, 6, 3), torch.nn.ReLU(), torch.nn.Conv2d(6, 4, 3), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("optimizer", [training.Adam(), training.AdamW(), training.RMSprop()])
def test_weights_with_channels_last(tmp_path: Path, optimizer):
    images = torch.randn(20, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    settings = problems.Settings(epochs=2, batch_size=5, optimizer=optimizer)

    def learn(folder: Path, stop: int | None = None, **options) -> torch.nn.Module:
        def loss(module, batch, step):
            if step.number == stop:
                raise CrashError
            return (module(batch) - batch.mean((1, 2, 3))[:, None]).square().mean()

        module = channels_last()
        training.fit(module, loss, images, settings, folder=folder, checkpoint_seconds=EVERY_STEP, **options)
        return module

    whole = learn(tmp_path / "whole")
    with pytest.raises(CrashError):
        learn(tmp_path / "run", stop=5)
    resumed = learn(tmp_path / "run", resume=True)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_running_mean_of_the_weights(tmp_path: Path):
    settings = problems.Settings(**{**vars(problems.SETTINGS), "averaging": 0.9})
    whole = train(tmp_path / "whole", settings=settings)
    with pytest.raises(CrashError):
        train(tmp_path / "run", settings=settings, loss=breaking_at(13, crash), checkpoint_seconds=EVERY_STEP)
    assert same(whole, train(tmp_path / "run", settings=settings, resume=True))
    with pytest.raises(RunFolderError, match=r"averaging is None, there it was 0\.9"):
        train(tmp_path / "run", resume=True)


def kill_after(step: int, delay: float, folder: Path) -> None:
    """Start or resume a training in a process of its own, and kill it some time after `step` has begun."""
    command = [sys.executable, "-m", "tests.training.problems", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if int(line) >= step:
                break
        time.sleep(delay)
        process.kill()
    assert process.returncode == -signal.SIGKILL


def test_killed(tmp_path: Path):
    seed = time.time_ns()
    print("seed", seed)  # shown if the test fails
    chance = random.Random(seed)
    kill_after(chance.randrange(1, STEPS - 4), 0.02 * chance.random(), tmp_path / "killed")
    assert list((tmp_path / "killed" / "checkpoints").iterdir())
    assert not (tmp_path / "killed" / "weights.safetensors").exists()
    resumed = train(tmp_path / "killed", loss=problems.slow, resume=True)
    assert same(train(tmp_path / "whole", loss=problems.slow), resumed)


def test_control_c(whole, tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=r"step-000000012.*with the folder '.*resume=True"):
        train(tmp_path, loss=breaking_at(11, lambda: signal.raise_signal(signal.SIGINT)), checkpoint_seconds=1e9)
    assert signal.getsignal(signal.SIGINT) is before
    assert same(whole, train(tmp_path, resume=True))


def test_control_c_at_the_last_step_is_not_lost(whole, tmp_path: Path):
    with pytest.raises(KeyboardInterrupt, match="resume=True"):
        train(tmp_path, loss=breaking_at(STEPS - 1, lambda: signal.raise_signal(signal.SIGINT)))
    assert same(whole, train(tmp_path, resume=True))


def test_second_control_c_stops_at_once(whole, tmp_path: Path):
    def twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("still here")

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, loss=breaking_at(11, twice), checkpoint_seconds=EVERY_STEP)
    assert same(whole, train(tmp_path, resume=True))


def test_finished_run_is_read_back(whole, tmp_path: Path):
    train(tmp_path)
    assert same(whole, train(tmp_path, loss=breaking_at(0, crash), resume=True))


def damage(path: Path, how: str) -> None:
    tensors, numbers = path / "tensors.safetensors", path / "numbers.json"
    if how == "truncated":
        tensors.write_bytes(tensors.read_bytes()[:-100])
    elif how == "changed":
        content = bytearray(tensors.read_bytes())
        content[-1] ^= 1
        tensors.write_bytes(content)
    elif how == "no tensors":
        tensors.unlink()
    elif how == "no numbers":
        numbers.unlink()
    else:
        numbers.write_text(numbers.read_text()[:40])


@pytest.mark.parametrize("how", ["truncated", "changed", "no tensors", "no numbers", "half the numbers"])
def test_damaged_checkpoints(whole, tmp_path: Path, how: str):
    with pytest.raises(CrashError):
        train(tmp_path, loss=breaking_at(11, crash), checkpoint_seconds=EVERY_STEP)
    older, newer = sorted((tmp_path / "checkpoints").glob("step-*"))
    damage(newer, how)
    (tmp_path / "checkpoints" / "draft").mkdir()  # as a process leaves it that is killed while it writes
    with pytest.warns(UserWarning, match="continuing from .*step-000000010, because later checkpoints are damaged"):
        assert same(whole, train(tmp_path, resume=True))
    for path in (tmp_path / "checkpoints").glob("step-*"):
        damage(path, how)
    with pytest.raises(RunFolderError, match=r"every checkpoint in .* is damaged: step-.*: delete"):
        train(tmp_path, resume=True)
    assert not older.exists()
