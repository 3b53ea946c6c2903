"""The tables of results, and the numbers of the README, which come from them."""

import doctest
import json
from collections.abc import Callable

import pytest

from benchmarks import readme, tables
from benchmarks.tables import cells, measured, paper

TABLES = [
    *[paper.synthetic, paper.timing, paper.knn, paper.embeddings, paper.embedding_ablation, paper.explanations],
    *[paper.known_answers, measured.speed, measured.softmaxes, measured.operators, measured.sampling, measured.others],
    *[measured.peers, measured.embedding_peers, measured.explanation_peers, measured.embedding_epochs, tables.summary],
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_tables_have_as_many_cells_in_every_row(table: Callable[[], str]):
    lines = [line for line in table().splitlines() if line.startswith("|")]
    assert len(lines) > 3
    assert len({line.count("|") for line in lines}) == 1


def test_readme_has_the_numbers_of_the_files():
    text = readme.README.read_text(encoding="utf-8")
    assert all(f"<!-- begin: {name} -->" in text for name in readme.BLOCKS)
    assert text == readme.filled(text), "run `make readme`"


def test_a_number_that_is_worse_than_the_papers_says_so():
    row = next(line for line in paper.knn().splitlines() if "CIFAR-10 | plain network" in line)
    assert "91.83 (below the paper) | 95.1" in row
    row = next(line for line in paper.knn().splitlines() if "MNIST | subset" in line)
    assert "99.58 | 99.3" in row


def test_peers_that_are_faster_are_marked(monkeypatch: pytest.MonkeyPatch):
    times = {"khot.successive_softmax": {(4, 128): 2.0, (64, 128): 3.0}, "other": {(4, 128): 1.5, (64, 128): 4.0}}
    monkeypatch.setattr(measured, "peer_times", lambda: times)
    assert measured.peers().splitlines()[-1] == "| other | 1.50 (faster than khot) | 4.00 |"


def test_machine_fits_one_line():
    own = json.loads((cells.ROOT / "results" / "timing.json").read_text())["machine"]
    assert tables.machine("results/timing.json").startswith(f"{own['processor']}, {own['cores']} cores")


def test_examples_of_cells():
    assert doctest.testmod(cells).failed == 0
