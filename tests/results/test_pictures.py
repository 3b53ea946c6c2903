"""The pictures of the README show what the files and khot compute."""

import torch

import khot
from benchmarks import pictures
from benchmarks.tables import measured


def test_peers_are_drawn_from_the_file():
    figure, found = pictures.peers(), measured.peer_times()
    assert [axes.get_title() for axes in figure.axes] == ["k = 4", "k = 64"]
    for axes, k in zip(figure.axes, (4, 64), strict=True):
        drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        assert drawn == {name: [time for (count, _), time in own.items() if count == k] for name, own in found.items()}


def test_idea_shows_one_draw():
    race, bars, relaxed = pictures.idea().axes
    keys = khot.gumbel_keys(torch.tensor(pictures.WEIGHTS).log(), torch.Generator().manual_seed(pictures.SEED))
    assert [text.get_text() for text in race.texts] == ["first", "second", "third"]
    assert len(bars.patches) == len(pictures.WEIGHTS)
    shown = [float(text.get_text()) for text in relaxed.texts]
    expected = torch.cat([khot.successive_softmax(keys, pictures.K, t) for t in pictures.TEMPERATURES])
    torch.testing.assert_close(torch.tensor(shown), expected, atol=0.0051, rtol=0)
