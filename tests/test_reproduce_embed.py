import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier

import khot
from khot.cli import app, main
from khot.embed import input_logits, subset_sne_loss
from khot.errors import InvalidValueError
from khot.experiments import embed, embed_ablation


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> embed.Plan:
    short = replace(embed.PLANS["quick", "digits"], epochs=2, pretrain_epochs=1)
    monkeypatch.setitem(embed.PLANS, ("quick", "digits"), short)
    return short


@pytest.mark.parametrize("method", embed.METHODS)
def test_a_row_of_the_tables(plan: embed.Plan, method: str, tmp_path: Path):
    result, (points, labels) = embed.run("digits", method, 2, "quick", tmp_path)
    digits = khot.datasets.load("digits")
    assert points.shape == (1437, 2)
    assert labels.tolist() == [digits.classes[label] for label in digits.train.labels]
    model = embed.estimator(method, 2, plan, 0, tmp_path / f"digits-{method}-d2-0")
    train, test = (part.inputs.reshape(-1, 64).astype(np.float32) / 16 for part in (digits.train, digits.test))
    others = model.fit(train).transform(test)  # the training was finished
    assert result.trustworthiness == pytest.approx(trustworthiness(test, others, n_neighbors=12), abs=2e-3)
    neighbor = KNeighborsClassifier(1).fit(points, digits.train.labels)
    assert result.knn_error == pytest.approx(100 * (1 - neighbor.score(others, digits.test.labels)), abs=0.3)
    assert len(result.history) == 2
    assert result.minutes >= 0
    assert result.spread == {}


def test_splits_are_averaged(plan: embed.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(embed.PLANS, ("quick", "digits"), replace(plan, epochs=1, splits=2, test_rows=300))
    result, _ = embed.run("digits", "subset", 3, "quick", tmp_path)
    assert result.spread["knn_error"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits-subset-d3-0", "digits-subset-d3-1"]


def test_reversed_noise_is_that_of_the_loss():
    rows, points = torch.rand(20, 5), torch.rand(20, 2)
    seed = torch.Generator().manual_seed(0)
    wanted = subset_sne_loss(input_logits(rows), points, 1, 0.1, reversed_noise=True, generator=seed)
    model = embed.estimator("subset-reversed", 2, embed.PLANS["full", "mnist"], 0, Path("nowhere"))
    assert torch.equal(model._objective(20)(rows, points, 0.1, torch.Generator().manual_seed(0)), wanted)


def test_the_papers_rows_have_the_papers_settings():
    model = embed.estimator("subset-pretrain", 10, embed.PLANS["full", "mnist"], 0, Path("nowhere"))
    chosen = {name: getattr(model, name) for name in ("n_neighbors", "temperature", "scale", "pretrain", "bias")}
    assert chosen == {"n_neighbors": 1, "temperature": 0.1, "scale": "raw", "pretrain": True, "bias": 1e-8}
    assert (model.batch_size, model.epochs, model.encoder) == (1000, 200, "large")
    assert (model.learning_rate, model.noise, model.alpha) == (1e-3, "both", None)


def test_both_methods_have_the_same_epochs_scale_and_rates():
    ours, tsne = (
        embed.estimator(method, 2, embed.PLANS["full", "mnist"], 0, Path("nowhere")).get_params(deep=False)
        for method in ("subset-ours", "tsne")
    )
    assert {name for name in tsne if name in ours and tsne[name] != ours[name]} <= {"alpha"}


@pytest.mark.parametrize(
    ("dataset", "dimensions", "mutual"), [("mnist", 2, True), ("mnist", 10, False), ("20newsgroups", 2, False)]
)
def test_where_neighbors_count_in_both_directions(dataset: str, dimensions: int, mutual: bool):
    model = embed.estimator("subset-ours", dimensions, embed.PLANS["full", dataset], 0, Path("nowhere"))
    assert model.mutual is mutual


def test_reproduce_embed_writes_what_it_prints(plan: embed.Plan, tmp_path: Path, capsys: pytest.CaptureFixture):
    app(
        ["reproduce", "embed", "--dims", "2", "3", "--method", "tsne", "--out", str(tmp_path)],
        result_action="return_value",
    )
    printed = capsys.readouterr().out
    for d in (2, 3):
        data = json.loads((tmp_path / f"embed-digits-tsne-d{d}.json").read_text())
        assert {"trustworthiness", "knn_error", "settings", "seed", "minutes"} <= data.keys()
        assert f"{data['trustworthiness']:.4f}" in printed
    assert (tmp_path / "embed-digits-tsne-d2.png").read_bytes().startswith(b"\x89PNG")
    assert "://" not in (tmp_path / "embed-digits-tsne-d2.html").read_text()
    assert not (tmp_path / "embed-digits-tsne-d3.png").exists()


def test_rows_of_the_tables():
    assert embed.cells((2, 10), None)[:6] == [*((2, method) for method in embed.METHODS), (10, "tsne")]
    assert (10, "subset-reversed") not in embed.cells((2, 10), None)
    with pytest.raises(InvalidValueError, match="no profile 'full' for 'digits'"):
        embed.run("digits", "tsne", 2, "full", Path("nowhere"))
    with pytest.raises(SystemExit):
        main(["reproduce", "embed", "--method", "umap"])


def test_the_ablation_goes_from_the_papers_settings_to_ours(tmp_path: Path):
    found = embed_ablation.models(tmp_path)
    models = [(method, model) for method, change, model in found if change != "another seed"]
    assert [model.random_state for _, change, model in found if change == "another seed"] == [1, 1]
    ends = {"subset-pretrain": models[0][1], "subset-ours": dict(models)["subset"], "tsne": dict(models)["tsne"]}
    for method, model in ends.items():
        wanted = embed.estimator(method, 2, embed_ablation.PLAN, 0, model.folder)
        assert model.get_params() == wanted.get_params()


def test_the_ablation_writes_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    digits = embed.rows_of("digits", embed.PLANS["quick", "digits"], 0)
    monkeypatch.setattr(embed_ablation, "rows_of", lambda *_: digits)
    monkeypatch.setattr(embed_ablation, "PLAN", embed.Plan("small", epochs=1, batch_size=100, pretrain_epochs=1))
    monkeypatch.setattr(embed_ablation, "ROWS", 200)
    monkeypatch.setattr(embed_ablation, "HELD_OUT", 100)
    folders = ["--folder", str(tmp_path / "runs"), "--out", str(tmp_path)]
    app(["reproduce", "embed", "--profile", "ablation", *folders], result_action="return_value")
    rows = json.loads((tmp_path / "embed-ablation.json").read_text())["rows"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[:-1] == [embed_ablation.line(embed_ablation.Row(**row)) for row in rows]
    assert len(rows) == 18
