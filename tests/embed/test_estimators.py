"""The embeddings learn, take all kinds of rows, and say what is wrong with their input."""

import copy
import json

import numpy as np
import pytest
import scipy.sparse
import torch
from safetensors.torch import load_file
from torch import nn

import khot
from khot._estimators.scaling import Scaling
from khot.embed import TUNED, ParametricTSNE, SigmoidNet, SubsetSNE, quality
from khot.embed._objective import Objective
from khot.embed._pretraining import pretrain
from khot.embed._scaling import learn_scaling, principal_axes
from khot.errors import DivergedError, KhotError
from khot.schedules import Exponential
from khot.training import SGD, Cosine
from tests.embed.problems import BOTH, clouds, quick, tiny

DIGITS = khot.datasets.load("digits")
PIXELS, TEST_PIXELS = (part.inputs.reshape(-1, 64) for part in (DIGITS.train, DIGITS.test))


def centred(points: np.ndarray) -> np.ndarray:
    """Losses do not depend on where the points are as a whole, so that rounding errors alone move them there."""
    return points - points.mean(0)


@pytest.mark.parametrize(("kind", "least"), [(SubsetSNE, 0.82), (ParametricTSNE, 0.88)])
def test_learns_to_embed_new_digits(kind, least):
    model = kind(batch_size=150, epochs=15, pretrain_epochs=3, random_state=0).fit(PIXELS)
    points = model.transform(TEST_PIXELS)
    assert points.dtype == np.float32
    assert quality.trustworthiness(TEST_PIXELS, points) > least
    untrained = kind(batch_size=150, epochs=1, learning_rate=0.0, pretrain=False, random_state=0).fit(PIXELS)
    assert quality.trustworthiness(TEST_PIXELS, untrained.transform(TEST_PIXELS)) < least - 0.05


@pytest.mark.parametrize(
    "options",
    [
        {"n_neighbors": 4},
        {"temperature": Exponential(1.0, 0.1, steps=60)},
        {"noise": "input", "samples": 2},
        {"mutual": True},
        {"bias": 0.0},
        {"scale": "raw"},
        {"input_components": 2},
        {"optimizer": SGD(momentum=0.9), "learning_rate": Cosine(0.01, steps=60)},
        {"pretrain": True, "pretrain_epochs": 3},
        {"n_components": 3, "encoder": tiny(3)},
        TUNED,
    ],
)
def test_options(options):
    X, y = clouds()  # noqa: N806
    model = quick(**{"epochs": 20, "learning_rate": 0.02, "temperature": 0.5, **options}).fit(X)
    others, labels = clouds(seed=1)
    assert quality.knn_error(model.transform(X), y, model.transform(others), labels) < 10
    assert model.transform(others).shape == (90, options.get("n_components", 2))


def test_the_best_epoch_is_kept():
    """Of the training loss; rates so large that the last epochs are not the best."""
    X, _ = clouds()  # noqa: N806
    rates = lambda step: 0.02 if step < 30 else 3.0  # noqa: E731
    model = quick(ParametricTSNE, epochs=15, learning_rate=rates).fit(X)
    losses = [record["loss"] for record in model.history_]
    best = int(np.argmin(losses))
    assert best < 12
    short = quick(ParametricTSNE, epochs=best + 1, learning_rate=rates).fit(X)
    assert np.array_equal(model.transform(X), short.transform(X))


def test_under_a_schedule_epochs_are_compared_at_the_last_temperature():
    X, _ = clouds()  # noqa: N806
    model = quick(temperature=Exponential(2.0, 0.1, steps=9), epochs=3).fit(X)
    assert all(record["validation"]["loss"] > 0 for record in model.history_)


@pytest.mark.parametrize("kind", BOTH)
def test_a_seed_fixes_the_result(kind):
    X, _ = clouds()  # noqa: N806
    one, two, other = (quick(kind, random_state=seed, pretrain=True).fit(X).transform(X) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", BOTH)
def test_sparse_and_dense_rows_are_alike(kind):
    X = np.round(clouds()[0])  # noqa: N806
    dense = quick(kind).fit(X)
    for sparse in (scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X), torch.from_numpy(X)):
        model = quick(kind).fit(sparse)
        assert np.array_equal(model.transform(X), dense.transform(X))
        assert np.array_equal(model.transform(sparse), dense.transform(X))


@pytest.mark.parametrize("kind", BOTH)
def test_units_do_not_matter(kind):
    X = clouds()[0].astype(np.float64)  # noqa: N806
    plain, moved = (centred(quick(kind, epochs=3).fit(rows).transform(rows)) for rows in (X, X * 1e-3 + 1e3))
    assert np.allclose(plain, moved, atol=1e-4)


@pytest.mark.parametrize("kind", BOTH)
def test_units_of_columns_do_not_matter(kind):
    X = clouds()[0].astype(np.float64)  # noqa: N806
    units = 10.0 ** np.arange(-3, X.shape[1] - 3)
    plain, moved = (quick(kind, scale="columns", epochs=3).fit(rows).transform(rows) for rows in (X, X * units + 5))
    assert np.allclose(plain, moved, atol=1e-4)


@pytest.mark.parametrize("rows", [90, 5000])
def test_principal_axes(rows: int):
    """Of rows in a plane with some noise, which comes in other units than it goes."""
    noise = np.random.default_rng(0)
    plane = noise.normal(size=(2, 9))
    X = noise.normal(size=(rows, 2)) @ plane + 0.01 * noise.normal(size=(rows, 9)) + 3  # noqa: N806
    axes = principal_axes(X, learn_scaling(X, "auto"), 2)
    assert axes.shape == (9, 2)
    assert torch.allclose(axes.T @ axes, torch.eye(2), atol=1e-5)
    left = plane.T - axes.double().numpy() @ (axes.double().numpy().T @ plane.T)
    assert np.abs(left).max() < 0.01


def test_neighbours_by_principal_components():
    """Two clouds in one column, and in others much noise."""
    noise = np.random.default_rng(0)
    X = np.where(np.arange(5) == 0, 9.0 * (np.arange(300) % 2)[:, None], 2.0) * noise.normal(1, 0.3, (300, 5))  # noqa: N806
    objective = Objective(lambda rows, *_: rows, principal_axes(X, learn_scaling(X, "raw"), 1))
    seen = objective(torch.from_numpy(X).float(), torch.empty(0), 1.0, torch.Generator())
    assert seen.shape == (300, 1)
    assert abs(np.corrcoef(seen[:, 0], X[:, 0])[0, 1]) > 0.99


def test_raw_rows_enter_as_they_are():
    X, _ = clouds()  # noqa: N806
    model = quick(scale="raw").fit(X)
    exact = copy.deepcopy(model.encoder_).double()(torch.from_numpy(X).double())
    assert np.array_equal(model.transform(X), exact.float().detach().numpy())


def test_constant_columns_and_whole_numbers():
    X = np.abs(np.round(clouds()[0] * 10))  # noqa: N806
    X[:, 2] = 7
    expected = centred(quick().fit(X).transform(X))
    for dtype in (np.int16, np.uint32, np.uint64, np.float64, np.float16, ">f4", object):
        assert np.allclose(centred(quick().fit(X.astype(dtype)).transform(X)), expected, atol=1e-5)
    assert np.isfinite(quick().fit(np.ones((40, 5))).transform(np.ones((1, 5)))).all()


def test_large_whole_numbers_keep_their_digits():
    rows = np.random.RandomState(0).randint(0, 50, (60, 5)) + 1_700_000_000
    points = [quick(SubsetSNE).fit(x).transform(x) for x in (rows, rows.astype(np.float64))]
    assert np.array_equal(*points)
    assert len(np.unique(points[0], axis=0)) > 50


def test_fewer_rows_than_a_batch_are_all_used():
    X, _ = clouds(10)  # noqa: N806
    small, large = (quick(batch_size=size).fit(X).transform(X) for size in (10, 1000))
    assert np.array_equal(small, large)


def test_an_own_encoder_is_copied():
    X, _ = clouds()  # noqa: N806
    encoder = tiny()
    before = [p.clone() for p in encoder.parameters()]
    model = quick(encoder=encoder).fit(X)
    assert all(torch.equal(a, b) for a, b in zip(before, encoder.parameters(), strict=True))
    assert not torch.equal(next(model.encoder_.parameters()), before[0])


def test_the_networks_of_the_paper():
    for name, hidden in [("small", [150, 150, 500]), ("large", [500, 500, 2000])]:
        model = quick(encoder=name, epochs=1, pretrain=False, learning_rate=0.0).fit(clouds()[0])
        layers = [layer for layer in model.encoder_ if isinstance(layer, nn.Linear)]
        assert [layer.out_features for layer in layers] == [*hidden, 2]
        assert [type(layer) for layer in model.encoder_][1::2] == [nn.Sigmoid] * 3
        for layer in layers:
            bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
            assert layer.bias.eq(0).all()
            assert 0.9 * bound < layer.weight.abs().max() <= bound


def test_pretraining_restores_the_rows(tmp_path):
    """Every layer with a linear decoder of its own; the encoder learns in place, the first layers too."""
    torch.manual_seed(0)
    rows, module = torch.randn(200, 10) * torch.tensor([4.0] + [0.5] * 9), SigmoidNet(10, (32, 24), 1)
    before = [layer.weight.clone() for layer in module if isinstance(layer, nn.Linear)]
    pretrain(module, rows.numpy(), Scaling(np.zeros(10), np.ones(())), 8, 10, 0, tmp_path)
    after = [layer.weight for layer in module if isinstance(layer, nn.Linear)]
    assert not any(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    for layer in (1, 2, 3):
        losses = [
            record["loss"] for record in json.loads((tmp_path / f"layer-{layer}/history.json").read_text())["epochs"]
        ]
        assert losses[-1] < 0.9 * losses[0]
    trained = list(load_file(tmp_path / "layer-3/weights.safetensors").values())  # of the encoder and the last decoder
    assert all(any(torch.equal(weight, other) for other in trained) for weight in after)
    first = list(load_file(tmp_path / "layer-1/weights.safetensors").values())
    assert not any(torch.equal(after[0], other) for other in first)  # it went on learning with the later layers


def test_verbose_tells_the_loss(capsys):
    quick(verbose=True, epochs=3).fit(clouds()[0])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]


def test_names_of_the_columns():
    X, _ = clouds()  # noqa: N806
    fitted = quick().fit(X).set_params(n_components=3)
    assert fitted.get_feature_names_out().tolist() == ["subsetsne0", "subsetsne1"]
    assert quick(ParametricTSNE).fit(X).get_feature_names_out().tolist() == ["parametrictsne0", "parametrictsne1"]


@pytest.mark.parametrize("dropout", [0, 0.3])
def test_two_processes_train_as_one(dropout: float):
    X, _ = clouds()  # noqa: N806
    one, two = (quick(devices=devices, dropout=dropout).fit(X) for devices in (1, 2))
    for left, right in zip(one.history_, two.history_, strict=True):
        assert left["loss"] == pytest.approx(right["loss"], abs=1e-4)
    assert np.allclose(centred(one.transform(X)), centred(two.transform(X)), atol=1e-4)


X, _ = clouds()


@pytest.mark.parametrize("scale", ["auto", "columns"])
@pytest.mark.parametrize("unit", [1e-170, 1e300])
def test_sizes_whose_squares_overflow(scale, unit):
    rows = X.astype(np.float64)
    learned, other = learn_scaling(rows, scale), learn_scaling(rows * unit, scale)
    np.testing.assert_allclose(other.mean / unit, learned.mean, rtol=1e-12)
    np.testing.assert_allclose(other.scale / unit, learned.scale, rtol=1e-12)


def test_rows_in_any_order_of_memory():
    model = quick(encoder="small", epochs=1).fit(X)
    assert np.array_equal(model.transform(X[::-1]), model.transform(X)[::-1])
    assert np.array_equal(model.transform(X[:, ::-1][:, ::-1]), model.transform(X))


def test_a_column_that_outweighs_all_others():
    rows = X * [1, 1, 100, 1, 1]
    with pytest.warns(UserWarning, match=r"column 2 \(from 0\) alone accounts for 100.0%.*--scale columns"):
        quick(epochs=1).fit(rows)
    quick(epochs=1, scale="columns").fit(rows)  # pytest is set to turn warnings into errors
    quick(epochs=1).fit(X * [1, 1, 3, 1, 1])


@pytest.mark.parametrize("scale", ["auto", "columns"])
def test_a_few_rows_far_out(scale):
    rows = X.astype(np.float64)
    rows[[3, 70]] *= 1e8
    with pytest.warns(UserWarning, match=r"half of the rows lie within .*e-0\d% of the spread.*leave out such rows"):
        quick(epochs=1, scale=scale).fit(rows)
    quick(epochs=1, scale=scale).fit(np.exp(X / X.std()))  # which are skewed, but not too much
    quick(epochs=1, scale=scale).fit(np.vstack([X[:20], np.zeros((80, 5))]))  # of which many are the same


@pytest.mark.parametrize("value", [0.1, -7.7, 1e9 + 0.1])
def test_constant_columns_have_no_spread(value):
    constant = np.full((6000, 1), value)
    assert learn_scaling(np.hstack([X[:60].repeat(100, 0), constant]), "columns").scale[-1] == 1
    assert learn_scaling(constant, "auto").scale == 1


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 2)

    def forward(self, rows):
        return self.layer(rows)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({}, np.where(X > 3, np.nan, X), "X contains NaN: fill in"),
        ({}, np.where(X > 3, np.inf, X), "X contains infinity"),
        ({}, scipy.sparse.csr_array(np.where(X > 3, np.nan, X)), "X contains NaN"),
        ({"scale": "raw"}, X * 1e19, r"squared distances below 1e38 with scale='raw', but got numbers up to"),
        ({}, X[:1], "minimum of 2 is required"),
        ({}, X[0], "Expected 2D array"),
        ({}, X[:, None], "dim 3"),
        ({}, X[:, :3], "must take rows of 3 features"),
        ({}, [["a", "b"], ["c", "d"]], "numeric"),
        ({"encoder": tiny(3)}, X, r"= \(2, 2\) for two rows, but got \(2, 3\)"),
        ({"encoder": nn.Flatten(0)}, X, r"but got \(10,\)"),
        ({"encoder": nn.GRU(5, 2)}, X, "but got a tuple"),
        ({"encoder": nn.Embedding(5, 2)}, X, "must take rows of 5 features"),
        ({}, np.array([[{}, 1]] * 5), "number"),
        ({"folder": 3}, X, "folder must be a path, but got 3"),
        ({"encoder": Wrapped(), "pretrain": True}, X, "nn.Sequential, but encoder is a Wrapped"),
        ({"encoder": "huge"}, X, "one of small, large"),
        ({"encoder": 3}, X, "one of small, large or a torch.nn.Module"),
        ({"scale": "log"}, X, "one of auto, columns, raw"),
        ({"perplexity": 30}, X, "between 1 and 29, one less than the rows of a batch, but got 30"),
        ({"perplexity": 5}, X[:5], "between 1 and 4"),
        ({"input_components": 6}, X, "input_components must be at most 5"),
        ({"input_components": 0}, X, "input_components must be at least 1"),
        ({"batch_size": 1}, X, "at least 2"),
        ({"batch_size": 2.5}, X, "batch_size must be an int"),
        ({"epochs": 0}, X, "epochs must be at least 1"),
        ({"n_components": 0}, X, "n_components must be at least 1"),
        ({"pretrain": True, "pretrain_epochs": 0}, X, "pretrain_epochs must be at least 1"),
        ({"random_state": -1}, X, "random_state must be an int from 0"),
        ({"resume": True}, X, "resume needs the folder"),
        ({"dropout": 1.0}, X, "dropout must lie below 1, but got 1.0"),
        ({"dropout": -0.1}, X, "dropout must be positive"),
        ({"device": "abacus"}, X, "device must be one of"),
    ],
)
def test_bad_input_of_fit(kind, options, rows, message):
    with pytest.raises((KhotError, ValueError), match=message):
        quick(kind, **options).fit(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 30}, "n_neighbors must be at most 29"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"bias": -1e-8}, "bias must be positive"),
        ({"bias": 0, "n_neighbors": 2}, "bias can be 0 only for n_neighbors = 1, but got 2"),
        ({"mutual": True, "n_neighbors": 2}, "mutual is only for n_neighbors = 1, but got 2: pass n_neighbors=1"),
        ({"mutual": "no"}, "mutual must be a bool, but got 'no': pass True or False"),
        ({"noise": "output"}, "one of both, input"),
        ({"noise": np.array(["both", "input"])}, "one of both, input"),
        ({"alpha": 1e300}, "alpha must lie between 0.001 and 1e"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"alpha": "none"}, "alpha must be one of auto"),
        ({"learning_rate": "slow"}, "learning_rate must be one of cycle"),
        ({"samples": 0}, "samples must be at least 1"),
    ],
)
def test_bad_input_of_subset_sne(options, message):
    with pytest.raises(KhotError, match=message):
        quick(**options).fit(X)


@pytest.mark.parametrize("kind", BOTH)
def test_a_training_that_diverges(kind, tmp_path):
    fitted = quick(kind).fit(X)
    before = fitted.transform(X)
    with pytest.raises(DivergedError, match="try a smaller learning_rate") as nowhere:
        fitted.set_params(learning_rate=1e36).fit(X)
    assert "checkpoint" not in str(nowhere.value)  # as its folder is gone
    with pytest.raises(DivergedError, match="try a smaller learning_rate") as somewhere:
        fitted.set_params(folder=tmp_path).fit(X)
    assert somewhere.value.checkpoint is None or somewhere.value.checkpoint.exists()
    assert np.array_equal(fitted.transform(X), before)  # still what it was


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("dimensions", "degrees"), [(1, 1.0), (2, 1.0), (4, 3.0)])
def test_degrees_of_freedom_by_the_dimensions(kind, dimensions, degrees):
    options = {"n_components": dimensions, "encoder": tiny(dimensions)}
    assert np.array_equal(*(quick(kind, alpha=a, **options).fit(X).transform(X) for a in ("auto", degrees)))


def test_bad_input_of_parametric_tsne():
    with pytest.raises(KhotError, match="alpha must be positive"):
        quick(ParametricTSNE, alpha=0).fit(X)


def test_bad_input_of_transform():
    model = quick().fit(X)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.transform(X[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        model.transform(np.full((2, 5), np.nan))
    assert model.transform(X[:1]).shape == (1, 2)
    with pytest.raises(KhotError, match="row 1 of X lies too far"):
        model.transform(np.full((2, 5), [[0.0], [1e39]]))


@pytest.mark.parametrize("n_components", [1, 2])
def test_where_a_row_stands_does_not_matter(n_components):
    model = quick(n_components=n_components, encoder="small", epochs=1).fit(PIXELS)
    points, order = model.transform(PIXELS), np.random.RandomState(0).permutation(len(PIXELS))
    np.testing.assert_array_equal(model.transform(PIXELS[order]), points[order])
    np.testing.assert_array_equal(np.concatenate([model.transform(row[None]) for row in PIXELS[:20]]), points[:20])
