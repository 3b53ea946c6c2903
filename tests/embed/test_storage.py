"""A saved embedding comes back to the bit, and a folder that holds none is refused."""

import json

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from khot.embed import ParametricTSNE, SubsetSNE, load
from khot.errors import ModelFileError
from tests.embed.problems import BOTH, clouds, quick, tiny

X, _ = clouds()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("scale", ["auto", "columns", "raw"])
def test_comes_back_to_the_bit(kind, scale, tmp_path, monkeypatch):
    model = quick(kind, encoder="small", scale=scale, epochs=1).fit(X)
    model.save(tmp_path / "new" / "map")
    (tmp_path / "new" / "map" / "points.npy").touch()
    model.save(tmp_path / "new" / "map")  # a second time, over the first, whose points are gone
    monkeypatch.setattr(torch, "load", None)  # nothing is unpickled
    assert sorted(path.name for path in (tmp_path / "new" / "map").iterdir()) == [
        "embedding.json",
        "tensors.safetensors",
    ]
    for loaded in (kind.load(tmp_path / "new" / "map"), load(tmp_path / "new" / "map")):
        assert type(loaded) is kind
        assert np.array_equal(loaded.transform(X), model.transform(X))
        assert loaded.get_params() == model.get_params()
        assert loaded.history_ == model.history_
        assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_parameters_changed_after_the_training(tmp_path):
    model = quick(encoder="small", epochs=1).fit(X)
    model.set_params(n_components=3, temperature=2.0).save(tmp_path)
    loaded = load(tmp_path)
    assert (loaded.n_components, loaded.temperature) == (3, 2.0)
    assert np.array_equal(loaded.transform(X), model.transform(X))


def test_flags_of_numpy(tmp_path):
    quick(encoder="small", epochs=1, mutual=np.bool_(True)).fit(X).save(tmp_path)
    assert load(tmp_path).mutual is True


def test_a_full_disk(tmp_path, monkeypatch):
    model = quick(encoder="small", epochs=1).fit(X)
    model.save(tmp_path)
    before = model.transform(X)

    def full(*_):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\): make room"):
        model.save(tmp_path)
    assert np.array_equal(load(tmp_path).transform(X), before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["embedding.json", "tensors.safetensors"]


def test_an_own_encoder_is_given_again(tmp_path):
    model = quick().fit(X)
    model.save(tmp_path)
    assert np.array_equal(SubsetSNE.load(tmp_path, encoder=tiny()).transform(X), model.transform(X))
    assert np.array_equal(load(tmp_path, encoder=tiny()).transform(X), model.transform(X))
    with pytest.raises(ModelFileError, match="encoder of your own: pass such a module"):
        SubsetSNE.load(tmp_path)
    with pytest.raises(ModelFileError, match="does not fit the weights"):
        SubsetSNE.load(tmp_path, encoder=nn.Linear(5, 2))


def test_folders_that_are_no_embeddings(tmp_path):
    model = quick(encoder="small", epochs=1).fit(X)
    with pytest.raises(ModelFileError, match="not the folder of an embedding"):
        load(tmp_path / "nothing")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ModelFileError, match="holds other things"):
        model.save(tmp_path)
    model.save(tmp_path / "map")
    with pytest.raises(ModelFileError, match="holds a SubsetSNE, not a ParametricTSNE"):
        ParametricTSNE.load(tmp_path / "map")
    with pytest.raises(ModelFileError, match="do not pass another"):
        load(tmp_path / "map", encoder=tiny())
    numbers = json.loads((tmp_path / "map" / "embedding.json").read_text())
    (tmp_path / "map" / "embedding.json").write_text(json.dumps({**numbers, "format": 99}))
    with pytest.raises(ModelFileError, match="another version"):
        load(tmp_path / "map")
    model.save(tmp_path / "map")
    (tmp_path / "map" / "tensors.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path / "map")
