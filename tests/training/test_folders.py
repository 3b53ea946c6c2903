"""What a run writes, where, and whose folder it leaves alone."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from khot.errors import KhotError, RunFolderError
from khot.training import Adam, Settings, _checkpoints, fit
from tests.training import problems
from tests.training.problems import EVERY_STEP, SETTINGS, data, network, squared_error, train

SHORT = Settings(epochs=1, batch_size=25)


def test_files(tmp_path: Path):
    run, module = train(tmp_path / "new" / "run", checkpoint_seconds=EVERY_STEP)
    files = {path.relative_to(run.folder).as_posix() for path in run.folder.rglob("*") if path.is_file()}
    checkpoint = {
        f"checkpoints/step-{step:09d}/{name}" for step in (23, 24) for name in ("tensors.safetensors", "numbers.json")
    }
    assert files == {"settings.json", "history.json", "weights.safetensors", *checkpoint}
    for path in run.folder.rglob("*.json"):
        json.loads(path.read_text())
    for path in run.folder.rglob("*.safetensors"):
        assert load_file(path)
    assert all(
        torch.equal(value, module.state_dict()[name])
        for name, value in load_file(run.folder / "weights.safetensors").items()
    )
    assert json.loads((run.folder / "history.json").read_text())["epochs"] == run.history


def test_another_run_is_not_overwritten(tmp_path: Path):
    train(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RunFolderError, match=r"holds a run already: resume it \(resume=True, --resume\)"):
        train(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"is not the folder of a run"):
        train(tmp_path / "checkpoints")
    with pytest.raises(RunFolderError, match=r"is not the folder of a run"):
        train(tmp_path / "notes.txt")
    assert all(path.read_bytes() == content for path, content in before.items())


def test_names_in_settings_stay(tmp_path: Path):
    """Runs of earlier versions can be resumed: the names in their settings.json are those of today."""
    train(tmp_path)
    names = ["khot", "epochs", "batch_size", "learning_rate", "optimizer", "temperature", "clip_norm", "averaging"]
    names += ["monitor", "maximize", "patience", "seed", "loss", "validate", "precision", "module", "weights", "data"]
    assert list(json.loads((tmp_path / "settings.json").read_text())) == names


def other_data():
    x, y = data()
    return x + (torch.arange(50) == 31)[:, None], y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": Settings(**{**vars(SETTINGS), "epochs": 4})}, "epochs is 4, there it was 3"),
        ({"settings": Settings(**{**vars(SETTINGS), "optimizer": Adam()})}, r"optimizer is 'Adam\(.*was 'AdamW\("),
        ({"settings": Settings(**{**vars(SETTINGS), "learning_rate": 0.1})}, r"learning_rate is 0.1, .*'WarmUp\("),
        ({"loss": problems.squared_error}, "loss is '<function squared_error>', there it was '<function noisy>'"),
        ({"precision": "bf16-mixed"}, "precision is 'bf16-mixed', there it was '32-true'"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, change: dict, message: str):
    train(tmp_path)
    with pytest.raises(RunFolderError, match=f"belongs to a run with other settings: {message}.*: pass the same"):
        train(tmp_path, resume=True, **change)


def test_other_data_and_modules_are_refused(tmp_path: Path):
    fit(network(), squared_error, data(), SHORT, folder=tmp_path)
    with pytest.raises(RunFolderError, match="data 0 is"):
        fit(network(), squared_error, other_data(), SHORT, folder=tmp_path, resume=True)
    with pytest.raises(RunFolderError, match=r"weights 0\.weight is"):
        fit(torch.nn.Sequential(torch.nn.Linear(5, 1)), squared_error, data(), SHORT, folder=tmp_path, resume=True)


def test_any_row_and_any_lambda_count(tmp_path: Path):
    inputs, targets = torch.randn(1200, 3), torch.randn(1200)
    short = Settings(epochs=1, batch_size=400, learning_rate=1e-3)

    def train(folder: Path, inputs: torch.Tensor, rate: float) -> None:
        settings = Settings(**{**vars(short), "temperature": lambda step: rate})
        fit(
            torch.nn.Linear(3, 1),
            lambda m, b, s: m(b[0]).mean(),
            (inputs, targets),
            settings,
            folder=folder,
            resume=True,
        )

    train(tmp_path, inputs, 1.0)
    train(tmp_path, inputs, 1.0)
    with pytest.raises(RunFolderError, match="temperature is"):
        train(tmp_path, inputs, 2.0)
    inputs[777, 1] += 1
    with pytest.raises(RunFolderError, match="data 0 is"):
        train(tmp_path, inputs, 1.0)


class Scaled:
    """A loss that prints its address only."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, module, batch, step) -> torch.Tensor:
        return self.factor * squared_error(module, batch, step)


def test_attributes_and_parts_without_weights_count(tmp_path: Path):
    def train(loss: Scaled, dropout: float) -> None:
        module = torch.nn.Sequential(*network(), torch.nn.Dropout(dropout))
        fit(module, loss, data(), SHORT, folder=tmp_path, resume=True)

    train(Scaled(1.0), 0.0)
    train(Scaled(1.0), 0.0)
    with pytest.raises(RunFolderError, match=r"loss is \"Scaled {'factor': 2.0}\", there it was"):
        train(Scaled(2.0), 0.0)
    with pytest.raises(RunFolderError, match="module is 'Sequential"):
        train(Scaled(1.0), 0.5)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("settings.json", "[]"),
        ("settings.json", "null"),
        ("numbers.json", {"progress": None}),
        ("numbers.json", {"progress": {"step": -1}}),
        ("numbers.json", {"progress": {"best_epoch": 99}}),
        ("numbers.json", {"progress": {"more": 1}}),
    ],
)
def test_numbers_that_nobody_wrote(tmp_path: Path, file: str, text: Any):
    fit(network(), squared_error, data(), SHORT, folder=tmp_path)
    path = next(tmp_path.rglob(file))
    if isinstance(text, dict):
        numbers = json.loads(path.read_text())
        old = numbers.pop("progress")
        text = json.dumps(numbers | ({"progress": old | text["progress"]} if text["progress"] else {}))
    path.write_text(text)
    with pytest.raises(RunFolderError, match="damaged"):
        fit(network(), squared_error, data(), SHORT, folder=tmp_path, resume=True)


def test_by_default_runs_live_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    first, second = (fit(network(), squared_error, data(), SHORT) for _ in range(2))
    assert first.folder.parent == second.folder.parent == tmp_path / "khot" / "runs"
    assert first.folder != second.folder
    assert fit(network(), squared_error, data(), SHORT, resume=True).folder == second.folder
    assert fit(network(), squared_error, data(), Settings(batch_size=5, epochs=1), resume=True).folder.name not in {
        first.folder.name,
        second.folder.name,
    }


def test_killed_while_the_folder_was_made(tmp_path: Path):
    (tmp_path / ".settings.json").write_text("{")
    assert fit(network(), squared_error, data(), SHORT, folder=tmp_path, resume=True).history
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"settings.json is damaged"):
        fit(network(), squared_error, data(), SHORT, folder=tmp_path, resume=True)


def test_how_often_checkpoints_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written, write = [], _checkpoints.write

    def spy(folder, step, *rest, **options):
        written.append(step)
        return write(folder, step, *rest, **options)

    monkeypatch.setattr(_checkpoints, "write", spy)
    train(tmp_path / "always", checkpoint_seconds=EVERY_STEP)
    assert written == list(range(1, 25))
    written.clear()
    train(tmp_path / "seldom", checkpoint_seconds=1e9)
    assert written[0] == 8  # the first epoch; whether the second is cheap depends on the disk
    assert written[-1] == 24
    assert set(written) <= {8, 16, 24}


def test_draft_never_passes_as_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever file the process is killed at, the last checkpoint is whole."""
    tensors = {"a": torch.arange(3.0)}
    first = _checkpoints.write(tmp_path, 1, tensors, {"b": 1}, keep=None)
    for name in ("write_tensors", "write_json", "digest"):
        with monkeypatch.context() as patch:
            patch.setattr(_checkpoints, name, lambda *rest: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                _checkpoints.write(tmp_path, 2, tensors, {"b": 2}, keep=first)
        assert _checkpoints.newest(tmp_path) == first
    second = _checkpoints.write(tmp_path, 2, tensors, {"b": 2}, keep=first)
    third = _checkpoints.write(tmp_path, 3, tensors, {"b": 3}, keep=second)
    assert sorted(tmp_path.iterdir()) == [second, third]
    assert _checkpoints.read(third)[1]["b"] == 3
    assert issubclass(RunFolderError, KhotError)
    assert issubclass(RunFolderError, OSError)
