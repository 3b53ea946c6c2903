import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import khot
from khot._estimators.scaling import Scaling
from khot.cli import app, main
from khot.errors import InvalidValueError
from khot.experiments import _knn_training as training
from khot.experiments import knn
from khot.training import Step


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> knn.Plan:
    """Two temperatures, and two short stages."""
    stages = (knn.Stage(1, 10), knn.Stage(2, 8))
    plan = replace(knn.PLANS["quick", "digits"], width=4, stages=stages, search_epochs=1, search_rows=400, samples=1)
    monkeypatch.setitem(knn.PLANS, ("quick", "digits"), plan)
    monkeypatch.setattr(knn, "TEMPERATURES", (1.0, 64.0))
    monkeypatch.setattr(knn, "RATES", (0.01, 0.3))
    return plan


def test_the_loss_is_the_share_of_wrong_labels_among_the_neighbours_of_each_part():
    """At a low temperature and far distances the relaxed neighbours are the nearest ones, which are counted by hand."""
    places = torch.tensor([0.0, 100.0, 203.0, 310.0, 1.0, 90.0, 215.0, 290.0])
    labels = torch.tensor([0, 1, 0, 1, 0, 0, 0, 1])
    wanted = 0
    for i in range(8):
        for part in (range(4), range(4, 8)):
            others = sorted((abs(places[i] - places[j]).item(), j) for j in part if j != i)
            wanted += sum(bool(labels[j] == labels[i]) for _, j in others[:2]) / 2
    loss = training.loss_of("subset", Scaling(np.zeros(1), np.ones(1)), "none", samples=3, k=2, candidates=4)
    step = Step(0, 0, torch.arange(8), 0.1, torch.Generator().manual_seed(0))
    images = places.reshape(8, 1, 1, 1)
    assert loss(nn.Flatten(), (images, labels), step).item() == pytest.approx(-wanted / 16, abs=1e-5)


def test_neuralsort_and_cross_entropy_are_the_baselines():
    scaling, step = Scaling(np.zeros(1), np.ones(1)), Step(0, 0, torch.arange(4), 1.0, torch.Generator())
    assert training.loss_of("neuralsort", scaling, "none", 1, 1, 2).relaxation is khot.neuralsort
    logits, labels = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 0])
    value = training.loss_of("cnn", scaling, "none", 1, 1, 2)(nn.Flatten(), (logits[:, None, :, None], labels), step)
    torch.testing.assert_close(value, -logits.log_softmax(1)[range(4), labels].mean())


def test_resized_images_keep_their_mean_and_order():
    images = np.arange(2 * 8 * 8, dtype=np.uint8).reshape(2, 8, 8, 1)
    small = training.resized(images, 4)
    assert small.shape == (2, 4, 4, 1)
    assert small.dtype == np.uint8
    np.testing.assert_allclose(small.mean((1, 2, 3)), images.mean((1, 2, 3)), atol=1)
    assert (np.diff(small[..., 0], axis=1) > 0).all()
    assert training.resized(images, 8) is images


@pytest.mark.parametrize("method", knn.METHODS)
def test_mirror_images_are_looked_at_if_the_training_looked_at_them(method: str):
    digits = khot.datasets.load("digits")
    turned = replace(digits, test=replace(digits.test, inputs=digits.test.inputs[:, :, ::-1]))
    torch.manual_seed(0)
    module, scaling = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), Scaling(np.zeros(1), np.ones(1))
    shares = {
        mirrored: [training.classify(method, module, data, scaling, 9, mirrored)[0] for data in (digits, turned)]
        for mirrored in (False, True)
    }
    assert shares[True][0] == shares[True][1]
    assert shares[False][0] != shares[False][1]
    assert replace(knn.PLANS["quick", "digits"], augment="both").mirrored
    assert not knn.PLANS["quick", "digits"].mirrored


@pytest.mark.parametrize("method", knn.METHODS)
def test_a_row_of_the_table(plan: knn.Plan, method: str, tmp_path: Path):
    result, voted = knn.run("digits", method, "quick", tmp_path, random_state=3)
    assert len(result.history) == 3
    assert [record["epoch"] for record in result.history] == [0, 1, 2]
    assert list(result.search) == (["0.01", "0.3"] if method == "cnn" else ["1", "64"])
    best = float(max(result.search, key=lambda value: result.search[value]))
    assert result.settings["learning_rate" if method == "cnn" else "temperature"] == best
    assert result.minutes > 0
    assert result.processor_minutes > 0
    assert (voted is None) == (method == "cnn")
    digits = khot.datasets.load("digits")
    if voted is not None:
        assert voted.neighbors.shape == (360, 9)
        right = (voted.predictions == digits.test.labels).mean()
        assert result.test_accuracy == pytest.approx(100 * right, abs=0.006)
    again, _ = knn.run("digits", method, "quick", tmp_path, random_state=3)  # all of it was there
    assert again.history == result.history
    assert again.test_accuracy == result.test_accuracy


def test_the_learning_rate_has_one_cycle_over_all_stages(plan: knn.Plan, tmp_path: Path):
    knn.run("digits", "subset", "quick", tmp_path)
    stages = sorted((tmp_path / "digits-subset-quick-0").glob("stage-*"))
    rates = [json.loads((stage / "settings.json").read_text())["learning_rate"] for stage in stages]
    steps = 1237 // plan.batch_size
    assert rates == [f"_Rest(rate=OneCycle(peak=0.1, steps={3 * steps}, rise=0.3), before={n})" for n in (0, steps)]


def test_reproduce_knn_writes_what_it_prints(plan: knn.Plan, tmp_path: Path, capsys: pytest.CaptureFixture):
    out = tmp_path / "new" / "folder"
    options = ["--out", str(out), "--folder", str(tmp_path / "runs")]
    app(["reproduce", "knn", *options], result_action="return_value")
    printed = capsys.readouterr().out
    for method in knn.METHODS:
        data = json.loads((out / f"knn-digits-{method}.json").read_text())
        assert {"dataset", "method", "test_accuracy", "settings", "seed", "minutes", "history"} <= data.keys()
        assert f"{data['test_accuracy']:.2f}" in printed
    pictures = sorted(path.name for path in out.glob("*.png"))
    assert pictures == ["knn-digits-neuralsort.png", "knn-digits-subset.png", "knn-digits.png"]
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_the_table_shows_the_paper_and_the_difference():
    rest = {
        "paper": "",
        "search": {},
        "settings": {},
        "seed": 0,
        "history": [],
        "machine": {},
        "processor_minutes": None,
    }
    long = knn.Result("cifar10", "subset", "long", 91.5, knn.PAPER["cifar10"]["subset"], minutes=140.0, **rest)
    worse = knn.Result("mnist", "cnn", "full", 99.0, knn.PAPER["mnist"]["cnn"], minutes=9.0, **rest)
    lines = knn.table([long, worse]).splitlines()
    assert lines[1].split() == ["cifar10", "subset", "(long)", "91.50", "90.1", "+1.40", "140.0"]
    assert lines[2].split() == ["mnist", "cnn", "99.00", "99.4", "-0.40", "9.0"]


def test_files_that_are_no_results_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture):
    for name, text in (("notes", "{}"), ("cut", "{"), ("list", "[]")):
        (tmp_path / f"knn-{name}.json").write_text(text)
    assert knn.results(tmp_path) == []
    assert capsys.readouterr().err.count("which is no result") == 3


def test_unknown_rows_are_refused(capsys: pytest.CaptureFixture, tmp_path: Path):
    with pytest.raises(InvalidValueError, match=r"no profile 'full' for 'digits': choose one of digits \(quick\)"):
        knn.run("digits", "subset", "full", tmp_path)
    with pytest.raises(InvalidValueError, match="method must be one of subset, neuralsort, cnn"):
        knn.run("digits", "svm", "quick", tmp_path)
    with pytest.raises(SystemExit):
        main(["reproduce", "knn", "--dataset", "digits", "--profile", "long", "--out", str(tmp_path)])
    assert "no profile 'long' for 'digits'" in capsys.readouterr().err
