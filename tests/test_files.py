"""Files that are there whole or not at all."""

import os
from pathlib import Path

import numpy as np
import pytest

from khot._files import new_file, write_array, write_text


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
