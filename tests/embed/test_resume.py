"""A training that was stopped and resumed ends with the same weights, bit for bit."""

import pytest
import torch

from khot.embed import ParametricTSNE, _fitting, _pretraining
from khot.errors import RunFolderError
from tests.embed.problems import BOTH, clouds, quick

X, _ = clouds()


class StopsError(Exception):
    pass


def weights(model) -> list[torch.Tensor]:
    return list(model.encoder_.state_dict().values())


def same(one, two) -> bool:
    return all(torch.equal(left, right) for left, right in zip(weights(one), weights(two), strict=True))


@pytest.mark.parametrize("kind", BOTH)
def test_stopped_in_the_training(kind, tmp_path):
    whole = quick(kind, epochs=4, pretrain=True).fit(X)
    stop, steps = True, []

    def rate(step: int) -> float:
        steps.append(step)
        if step == 8 and stop:
            raise StopsError
        return 1e-3

    options = {"epochs": 4, "pretrain": True, "learning_rate": rate, "folder": tmp_path / "run"}
    with pytest.raises(StopsError):
        quick(kind, **options).fit(X)
    stop, steps[:] = False, []
    assert same(quick(kind, **options, resume=True).fit(X), whole)
    assert 2 not in steps  # it went on after an epoch of three steps
    assert same(quick(kind, **options, resume=True).fit(X), whole)  # and what is finished is only read


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_stopped_in_the_pretraining(layer, tmp_path, monkeypatch):
    whole = quick(pretrain=True, pretrain_epochs=3).fit(X)
    seen, restoration = [], _pretraining._Restoration.__call__

    def stopping(self, module, batch, step):
        seen.append(len(module.module[0]))
        if len(module.module[0]) == layer and step.number == 4:
            raise StopsError
        return restoration(self, module, batch, step)

    with monkeypatch.context() as patch:
        patch.setattr(_pretraining._Restoration, "__call__", stopping)
        with pytest.raises(StopsError):
            quick(pretrain=True, pretrain_epochs=3, folder=tmp_path / "run").fit(X)
    assert max(seen) == layer
    assert same(quick(pretrain=True, pretrain_epochs=3, folder=tmp_path / "run", resume=True).fit(X), whole)


def test_another_run_is_refused(tmp_path):
    quick(folder=tmp_path / "run").fit(X)
    with pytest.raises(RunFolderError, match="resume=True"):
        quick(folder=tmp_path / "run").fit(X)
    others = {"n_neighbors": 2, "noise": "input", "perplexity": 6, "samples": 2, "mutual": True, "dropout": 0.1}
    for name, value in others.items():
        with pytest.raises(RunFolderError, match="other settings: loss"):
            quick(folder=tmp_path / "run", resume=True, **{name: value}).fit(X)
    others = {"scale": "raw", "input_components": 2, "pretrain": True}
    for name, value in others.items():
        with pytest.raises(RunFolderError, match=f"other settings: {name} is {value!r}, there it was"):
            quick(folder=tmp_path / "run", resume=True, **{name: value}).fit(X)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["embedding"]
    with pytest.raises(RunFolderError, match="other settings: data"):
        quick(folder=tmp_path / "run", resume=True).fit(X + 1)
    with pytest.raises(RunFolderError, match="other settings: loss"):
        quick(ParametricTSNE, folder=tmp_path / "run", resume=True).fit(X)


def test_nothing_is_left_behind(monkeypatch):
    places = []

    def train(*arguments):
        places.append(arguments[-1])
        return original(*arguments)

    original = _fitting.train
    monkeypatch.setattr("khot.embed.estimator.train", train)
    quick().fit(X)
    assert not places[0].exists()
