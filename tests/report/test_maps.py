"""Maps: what is in the picture and the page."""

import base64
import json
import re

import numpy as np
import pytest
from matplotlib.image import imread

from khot._report.maps import scatter_page, scatter_picture, write_map

POINTS = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
LABELS = np.array(["b", "a</script>", "c & d"])[np.arange(500) % 3]


def content(path) -> dict:
    """The data of a page, found as a browser would: up to the first end of the script."""
    text = path.read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def _inked(path) -> np.ndarray:
    """Lines of a picture, below its title, with something in its left half."""
    picture = imread(path)[100:, :630, :3]
    return np.flatnonzero((picture < 0.98).any((1, 2)))


def test_the_page_holds_the_points(tmp_path):
    scatter_page(tmp_path / "map.html", POINTS, LABELS, "<Title> & more")
    data = content(tmp_path / "map.html")
    assert np.array_equal(np.frombuffer(base64.b64decode(data["points"]), "<f4").reshape(-1, 2), POINTS)
    numbers = np.frombuffer(base64.b64decode(data["labels"]), "<u4")
    assert np.array_equal(np.array(data["classes"])[numbers], LABELS)
    assert len(data["colours"]) == 3
    text = (tmp_path / "map.html").read_text()
    assert "&lt;Title&gt; &amp; more" in text
    assert "<Title>" not in text
    assert not re.search(r"https?:|src=|@import|<link", text)  # nothing from a network


def test_without_labels(tmp_path):
    scatter_page(tmp_path / "map.html", POINTS, None, "map")
    data = content(tmp_path / "map.html")
    assert data["labelled"] is False
    assert set(base64.b64decode(data["labels"])) == {0}


def test_names_of_points(tmp_path):
    names = [f"point {i}</script>" for i in range(500)]
    scatter_page(tmp_path / "map.html", POINTS, None, "map", names)
    assert content(tmp_path / "map.html")["names"] == names
    scatter_page(tmp_path / "map.html", POINTS, None, "map")
    assert content(tmp_path / "map.html")["names"] is None


def test_numbers_in_names_of_classes_go_by_their_size(tmp_path):
    labels = np.array(["class10", "class2", "class\u00b2", "class2b", "10", "b"])[np.arange(500) % 6]
    scatter_page(tmp_path / "map.html", POINTS, labels, "map")
    data = content(tmp_path / "map.html")
    assert data["classes"] == ["10", "b", "class2", "class2b", "class10", "class\u00b2"]
    numbers = np.frombuffer(base64.b64decode(data["labels"]), "<u4")
    assert np.array_equal(np.array(data["classes"])[numbers], labels)


def test_a_page_is_small(tmp_path):
    points = np.zeros((60_000, 2))
    scatter_page(tmp_path / "map.html", points, np.arange(60_000) % 10, "map")
    assert (tmp_path / "map.html").stat().st_size < 60_000 * 12 * 4 / 3 + 20_000


@pytest.mark.parametrize("labels", [None, LABELS, np.arange(500) % 60])
def test_the_picture_has_the_colours(labels, tmp_path):
    scatter_picture(tmp_path / "map.png", POINTS, labels, "map")
    pixels = imread(tmp_path / "map.png")[..., :3]
    coloured = np.ptp(pixels, axis=2) > 0.2
    assert coloured.mean() > 0.002
    assert pixels.shape[0] > 900
    assert len(np.unique(pixels[coloured].round(1), axis=0)) > (5 if labels is None else 10)


def test_labels_that_are_no_formulas_or_missing(tmp_path):
    labels = np.array(["b$_$", None, 3], dtype=object)[np.arange(500) % 3]
    scatter_picture(tmp_path / "map.png", POINTS, labels, "what costs $5_$")
    scatter_page(tmp_path / "map.html", POINTS, labels, "what costs $5_$")
    assert content(tmp_path / "map.html")["classes"] == ["", "3", "b$_$"]


def test_numbers_have_a_scale_of_colours(tmp_path):
    values = np.sort(np.random.default_rng(0).exponential(size=500))
    for labels in (values, values.astype(str), np.round(1000 * values).astype(int)):
        scatter_page(tmp_path / "map.html", POINTS, labels, "map")
        data = content(tmp_path / "map.html")
        numbers = np.frombuffer(base64.b64decode(data["labels"]), "<u4")
        assert (np.diff(numbers.astype(int)) >= 0).all()
        assert len(data["classes"]) == len({*data["colours"]}) == 10
        assert np.bincount(numbers).min() >= 40
        assert np.array_equal(np.frombuffer(base64.b64decode(data["values"]), "<f8"), labels.astype(float))


def test_numbers_that_are_mostly_the_same(tmp_path):
    labels = np.maximum(0, np.arange(500) - 440)
    scatter_page(tmp_path / "map.html", POINTS, labels, "map")
    data = content(tmp_path / "map.html")
    assert data["classes"] == ["0 to 9", "9 to 59"]
    assert np.frombuffer(base64.b64decode(data["labels"]), "<u4").max() < len(data["classes"])


def test_a_legend_leaves_room_for_the_points(tmp_path):
    labels = np.array([f"_a class with a name that is far too long {i % 200}" for i in range(500)])
    scatter_picture(tmp_path / "many.png", POINTS, labels, "map")
    scatter_picture(tmp_path / "none.png", POINTS, None, "map")
    many, none = (np.ptp(_inked(tmp_path / f"{name}.png")) for name in ("many", "none"))
    assert many > 0.6 * none


def test_only_a_plane_is_drawn(tmp_path):
    names = [path.name for path in write_map(tmp_path, np.zeros((5, 3)), None, "map")]
    assert names == ["points.npy"]
