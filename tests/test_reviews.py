import numpy as np
import torch

from khot.experiments import _black_boxes, reviews

TEXTS = ["Great film! <br /><br />A great, great plot.", "Bad. Bad film...", ""]


def test_reviews_as_words():
    known = reviews.numbers_of(TEXTS, size=6)
    assert known == {"great": 3, "bad": 4, "film": 5}
    rows = reviews.as_words(TEXTS, known, length=5)
    assert rows.tolist() == [[5, 2, 3, 3, 2], [0, 1, 4, 4, 5], [0, 0, 0, 0, 1]]


def test_reviews_as_sentences():
    known = reviews.numbers_of(TEXTS, size=6)
    rows = reviews.as_sentences(TEXTS, known, count=2, length=3)
    assert rows.tolist() == [[[3, 5, 0], [2, 3, 3]], [[4, 0, 0], [4, 5, 0]], [[0] * 3] * 2]


def test_the_sentence_network_does_not_see_padding():
    torch.manual_seed(0)
    network = _black_boxes.SentenceNetwork(9).eval()
    codes = torch.tensor([[[1, 2, 0], [3, 0, 0], [0, 0, 0]]])
    wider = torch.nn.functional.pad(codes, (0, 4, 0, 2))
    torch.testing.assert_close(network(codes), network(wider))
    gaps = torch.tensor([[[0, 0, 0], [1, 2, 0], [0, 0, 0], [0, 0, 0], [3, 0, 0]]])
    torch.testing.assert_close(network(codes), network(gaps))  # as if the other sentences had never been written
    assert not torch.allclose(network(codes), network(codes.flip(1)))
    empty = network(torch.zeros(2, 3, 4, dtype=torch.long))
    assert empty.isfinite().all()


def test_a_network_learns_from_its_words(tmp_path):
    noise = np.random.RandomState(0)
    inputs = noise.randint(3, 20, (2000, 12))
    labels = (inputs == 7).any(1).astype(np.int64)
    torch.manual_seed(0)
    network = _black_boxes.WordNetwork(20)
    run = _black_boxes.train(network, inputs, labels, random_state=0, folder=tmp_path / "run", epochs=12)
    assert run.best["validation"]["accuracy"] > 0.85
    outputs = _black_boxes.predict(network, inputs)
    np.testing.assert_allclose(outputs.sum(1), 1, rtol=1e-5)
