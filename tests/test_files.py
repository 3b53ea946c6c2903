"""Files that are there whole or not at all."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from khot._files import new_file, readable_json, write_array, write_json, write_text


def write_half(path: Path) -> None:
    with new_file(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt


def test_what_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "new" / "page.html"
    write_text(path, "before")
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert path.read_text() == "before"
    assert [other.name for other in path.parent.iterdir()] == ["page.html"]


def test_arrays_have_the_name_that_is_given(tmp_path):
    write_array(tmp_path / "P.NPY", np.arange(3))
    assert [path.name for path in tmp_path.iterdir()] == ["P.NPY"]
    assert np.load(tmp_path / "P.NPY").tolist() == [0, 1, 2]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"


def test_a_device_is_not_replaced():
    write_text(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()


def test_text_that_is_no_unicode(tmp_path):
    write_text(tmp_path / "text", "a\ud800b\r\n")
    assert (tmp_path / "text").read_bytes() == b"a?b\r\n"


def test_a_pipe_is_written_to(tmp_path):
    reader, writer = os.pipe()
    try:
        write_text(Path(f"/dev/fd/{writer}"), "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
        os.close(writer)


def test_readable_json():
    record = {
        "epoch": 0,
        "loss": -0.8460504318367351,
        "validation": {"accuracy": 0.9804},
        "seconds": 23.883361769963813,
    }
    value = {
        "name": "digits",
        "weights": [0.1] * 200,
        "empty": [[], {}],
        "history": [record] * 20,
        1: ("a", None, True),
        "settings": {f"parameter {i}": i for i in range(20)},
    }
    text = readable_json(value)
    assert json.loads(text) == json.loads(json.dumps(value))
    lines = text.splitlines()
    assert lines[:4] == ["{", ' "name": "digits",', f' "weights": {[0.1] * 200},', ' "empty": [[], {}],']
    assert lines.count("  " + json.dumps(record) + ",") == 19
    assert ' "1": ["a", null, true],' in lines
    assert '  "parameter 19": 19' in lines
    assert readable_json(json.loads(text)) == text


def test_numbers_that_json_has_no_word_for(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "numbers.json", {"loss": float("nan")})
    assert not [*tmp_path.iterdir()]
    assert readable_json({"loss": float("inf")}, allow_nan=True) == '{\n "loss": Infinity\n}\n'
