"""A saved classifier comes back to the bit, and a folder that holds none is refused."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from khot.errors import InvalidTypeError, ModelFileError
from khot.neighbors import SubsetKNNClassifier
from tests.neighbors.problems import DIGITS, WORDS, blobs, own_encoder, quick


def assert_same(model, loaded, X):  # noqa: N803
    for left, right in zip(model.kneighbors(X), loaded.kneighbors(X), strict=True):
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)
    assert np.array_equal(model.predict(X), loaded.predict(X))
    assert model.classes_.dtype == loaded.classes_.dtype


@pytest.mark.parametrize("encoder", ["convnet", "resnet"])
def test_images_and_words_come_back_to_the_bit(encoder, tmp_path):
    images, labels = DIGITS.train.inputs[:80], WORDS[DIGITS.train.labels[:80]]
    model = quick(encoder=encoder, epochs=1).fit(images, labels)
    model.save(tmp_path / "new" / "model")
    loaded = SubsetKNNClassifier.load(tmp_path / "new" / "model")
    assert_same(model, loaded, DIGITS.test.inputs[:50])
    assert loaded.get_params() == {**model.get_params()}
    assert loaded.history_ == model.history_


@pytest.mark.parametrize("labels", [int, float, bool, object, np.uint8, str])
def test_labels_of_all_kinds_come_back(labels, tmp_path):
    X, y = blobs()  # noqa: N806
    model = quick(epochs=1).fit(X, y.astype(str).astype(object) if labels is object else (y % 2).astype(labels))
    model.save(tmp_path)
    model.save(tmp_path)  # a second time, over the first
    assert_same(model, SubsetKNNClassifier.load(tmp_path), X)


def test_an_own_encoder_is_given_again(tmp_path):
    X, y = blobs()  # noqa: N806
    model = quick(encoder=own_encoder()).fit(X, y)
    model.save(tmp_path)
    assert_same(model, SubsetKNNClassifier.load(tmp_path, encoder=own_encoder()), X)
    with pytest.raises(ModelFileError, match="encoder of your own: pass such a module"):
        SubsetKNNClassifier.load(tmp_path)
    with pytest.raises(ModelFileError, match="does not fit the weights"):
        SubsetKNNClassifier.load(tmp_path, encoder=nn.Linear(4, 2))


def test_added_references_are_saved(tmp_path):
    X, y = blobs()  # noqa: N806
    model = quick().fit(X, y).add_references(X + 20, y + 3)
    model.save(tmp_path)
    loaded = SubsetKNNClassifier.load(tmp_path)
    assert_same(model, loaded, X + 20)
    assert loaded.classes_.tolist() == [0, 1, 2, 3, 4, 5]


def test_folders_that_are_no_classifiers(tmp_path):
    X, y = blobs()  # noqa: N806
    model = quick(epochs=1).fit(X, y)
    with pytest.raises(ModelFileError, match="not the folder of a classifier"):
        SubsetKNNClassifier.load(tmp_path / "nothing")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ModelFileError, match="holds other things"):
        model.save(tmp_path)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="do not pass another"):
        SubsetKNNClassifier.load(tmp_path / "model", encoder=own_encoder())
    numbers = json.loads((tmp_path / "model" / "classifier.json").read_text())
    (tmp_path / "model" / "classifier.json").write_text(json.dumps({**numbers, "format": 99}))
    with pytest.raises(ModelFileError, match="another version"):
        SubsetKNNClassifier.load(tmp_path / "model")
    model.save(tmp_path / "model")
    (tmp_path / "model" / "tensors.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="cannot be read"):
        SubsetKNNClassifier.load(tmp_path / "model")


def test_labels_that_json_has_no_word_for(tmp_path):
    X, y = blobs()  # noqa: N806
    model = quick(epochs=1).fit(X, y)
    model.classes_ = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
    with pytest.raises(InvalidTypeError, match="labels must be numbers or texts"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_nothing_is_loaded_by_pickle(tmp_path, monkeypatch):
    X, y = blobs()  # noqa: N806
    quick(epochs=1).fit(X, y).save(tmp_path)
    monkeypatch.setattr(torch, "load", None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["classifier.json", "tensors.safetensors"]
    SubsetKNNClassifier.load(tmp_path)


@pytest.mark.parametrize("name", ["save_json", "save_tensors"])
def test_a_model_outlives_a_save_that_fails(name, tmp_path, monkeypatch):
    X, y = blobs()  # noqa: N806
    model = quick(epochs=1).fit(X, y)
    model.save(tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr(f"khot._estimators.storage.{name}", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            quick(epochs=2).fit(X, y).save(tmp_path / "model")
    assert np.array_equal(SubsetKNNClassifier.load(tmp_path / "model").predict(X), model.predict(X))
    with pytest.raises(ModelFileError, match="cannot be saved"):
        model.set_params(temperature=float("inf")).save(tmp_path / "model")
    assert np.array_equal(SubsetKNNClassifier.load(tmp_path / "model").predict(X), model.predict(X))


def test_folders_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".DS_Store").touch()
    model = quick(epochs=1).fit(*blobs())
    for name in ("file/model", "nowhere"):
        with pytest.raises(ModelFileError, match="cannot be made or written to"):
            model.save(tmp_path / name)
    model.save(tmp_path / "folder")


def test_files_of_two_saves_are_told_apart(tmp_path):
    X, y = blobs()  # noqa: N806
    first, second = tmp_path / "first", tmp_path / "second"
    quick().fit(X, WORDS[y]).save(first)
    quick(random_state=1).fit(X, WORDS[(y + 1) % 3]).save(second)
    (first / "tensors.safetensors").write_bytes((second / "tensors.safetensors").read_bytes())
    with pytest.raises(ModelFileError, match="not the one that was saved with"):
        SubsetKNNClassifier.load(first)
    (second / ".tensors.safetensors").touch()  # of a save that was killed
    quick().fit(X, WORDS[y]).save(second)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoder", None),
        ("shape", [-1]),
        ("shape", [[4]]),
        ("classes", {"dtype": "<i8", "values": [[0], [1], [2]]}),
        ("classes", {"dtype": "<i8", "values": [0, 1]}),
        ("parameters", {"abacus": 1}),
        ("format", 99),
    ],
)
def test_edited_numbers_are_refused(tmp_path, name, value):
    X, y = blobs()  # noqa: N806
    quick().fit(X, y).save(tmp_path)
    path = tmp_path / "classifier.json"
    numbers = json.loads(path.read_text())
    path.write_text(json.dumps(numbers | {name: value}))
    with pytest.raises(ModelFileError):
        SubsetKNNClassifier.load(tmp_path)
    del numbers[name]
    path.write_text(json.dumps(numbers))
    with pytest.raises(ModelFileError):
        SubsetKNNClassifier.load(tmp_path)
