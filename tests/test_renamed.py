"""Old names of arguments and options work for one release, with a warning that says the new name."""

import inspect
import json
import warnings
from pathlib import Path

import pytest
from sklearn.base import clone

from khot import datasets
from khot.cli import main
from khot.cli.renamed import NEW_NAMES, with_new_names
from khot.embed import ParametricTSNE, SubsetSNE, load
from khot.errors import InvalidTypeError
from khot.training import Settings, fit
from tests.embed.problems import clouds, quick
from tests.training.problems import data, network, squared_error

X, _ = clouds()


@pytest.mark.parametrize("kind", [SubsetSNE, ParametricTSNE])
def test_parameters_of_estimators(kind):
    with pytest.warns(FutureWarning, match="max_epochs is now called epochs: rename the argument") as caught:
        model = kind(max_epochs=3)
    assert caught[0].filename == __file__
    assert model.epochs == 3
    with pytest.warns(FutureWarning, match="max_epochs is now called epochs"):
        assert model.set_params(max_epochs=4).get_params()["epochs"] == 4
    assert clone(model).epochs == 4
    assert "max_epochs" not in model.get_params()
    assert "max_epochs" not in inspect.signature(kind).parameters
    with pytest.raises(InvalidTypeError, match="max_epochs is now called epochs, but got both: pass epochs only"):
        kind(epochs=3, max_epochs=3)


def test_arguments_of_trainings(tmp_path: Path):
    with pytest.warns(FutureWarning, match="seed is now called random_state"):
        settings = Settings(epochs=1, batch_size=25, seed=3)
    assert settings.random_state == 3
    with pytest.warns(FutureWarning, match="seed is now called random_state: rename the attribute") as caught:
        assert settings.seed == 3
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match="accelerator is now called device"):
        fit(network(), squared_error, data(), settings, folder=tmp_path, accelerator="cpu")


def test_argument_of_split():
    rows = datasets.load("digits").test
    with pytest.warns(FutureWarning, match="seed is now called random_state"):
        old = datasets.split(rows, 100, seed=1)
    assert old[1].ids.tolist() == datasets.split(rows, 100, random_state=1)[1].ids.tolist()


def test_saved_parameters(tmp_path: Path):
    """A model that an earlier version has saved loads without a warning."""
    model = quick(encoder="small", epochs=1).fit(X)
    model.save(tmp_path)
    numbers = json.loads((tmp_path / "embedding.json").read_text())
    numbers["parameters"]["max_epochs"] = numbers["parameters"].pop("epochs")
    (tmp_path / "embedding.json").write_text(json.dumps(numbers))
    loaded = load(tmp_path)
    assert loaded.epochs == 1
    assert (loaded.transform(X) == model.transform(X)).all()


def test_options():
    with pytest.warns(FutureWarning, match="--run is now called --folder: rename the option"):
        assert with_new_names(["fit", "--run", "trainings"]) == ["fit", "--folder", "trainings"]
    with pytest.warns(FutureWarning, match="--run"):
        assert with_new_names(["--run=a=b", "--", "--run"]) == ["--folder=a=b", "--", "--run"]
    assert not {*NEW_NAMES} & {*NEW_NAMES.values()}


def test_an_old_option_does_its_work(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "file").touch()
    rows, out, file = (str(tmp_path / name) for name in ("rows.npy", "map", "file"))
    with warnings.catch_warnings(action="default"), pytest.raises(SystemExit):
        main(["embed", "fit", rows, "-o", out, "--run", file])
    shown = capsys.readouterr().err
    assert "khot: warning: --run is now called --folder: rename the option" in shown
    assert "--folder must be a folder, but" in shown
