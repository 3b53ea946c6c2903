"""Main applications on data that come with khot, on one page, in a minute or two and without network."""

import sys
from pathlib import Path

from khot._report.page import Section, write_page
from khot.experiments import embed, knn, known_answers, synthetic
from khot.experiments.runs import runs

TITLE = "khot: choose k of n items, and backpropagate through the choice"
INTRODUCTION = (
    "Log-weights are perturbed with Gumbel noise, a relaxed top k of the keys is taken, and gradients flow through it. "
    "Everything on this page was just computed on this machine, from data that are installed with khot."
)


def run(folder: Path) -> Path:
    """Run the demonstrations and write `index.html`, their pictures and data into an existing folder."""
    from tqdm import tqdm

    page, parts = folder / "index.html", (_synthetic, _knn, _embed, _explain)
    progress = tqdm(parts, desc="applications", disable=not sys.stderr.isatty())
    write_page(page, TITLE, INTRODUCTION, [part(folder) for part in progress])
    return page


def _synthetic(folder: Path) -> Section:
    result = synthetic.run()
    _, picture = synthetic.write(result, folder)
    text = (
        "Relaxed samples and the exact distribution. Subsets of 2 of 4 items with weights 0.1 to 0.4 are sampled by "
        "relaxed vectors at three temperatures; the black lines are their exact probabilities."
    )
    return Section("Is the sample right?", text, synthetic.table(result), [picture])


def _knn(folder: Path) -> Section:
    with runs(None, "quick", "demo") as trainings:
        result, voted = knn.run("digits", "subset", "quick", trainings)
    knn.write(result, voted, folder)
    text = (
        "Deep k nearest neighbours on 8 × 8 digits. An encoder was trained through relaxed samples of 9 neighbours; a "
        f"test image gets the label of most of its 9 nearest training images, which is right for "
        f"{result.test_accuracy:.1f}% of them. Below are the neighbours of some, and the accuracy on held-out images."
    )
    pictures = [folder / "knn-digits-subset.png", folder / "knn-digits.png"]
    return Section("Classify by neighbours", text, pictures=pictures)


def _embed(folder: Path) -> Section:
    with runs(None, "quick", "demo") as trainings:
        result, drawn = embed.run("digits", "subset-ours", 2, "quick", trainings)
    _, picture, page = embed.write(result, drawn, folder)
    text = (
        "A map of the same digits. An encoder into two dimensions was trained, without labels, so that neighbours of "
        f"a digit stay its neighbours. This holds for new digits, too: trustworthiness {result.trustworthiness:.3f} on "
        f"the test images, of which {result.knn_error:.1f}% have a nearest neighbour of another class. The file "
        f"{page.name} next to this page can be zoomed."
    )
    return Section("See the neighbours", text, pictures=[picture])


def _explain(folder: Path) -> Section:
    methods = ("subset", "l2x")
    rows = [known_answers.run(name, method, "quick") for name in known_answers.PROBLEMS for method in methods]
    known_answers.write(rows, folder)
    text = (
        "Explain a model by k features. In four synthetic problems the model depends on 2 to 5 of 10 features, in the "
        "last one on other features in every second row. An explainer that only sees the outputs of the model should "
        "score these highest. Below are the median ranks of the decisive features, and the smallest possible ones, "
        "with khot's subset sampling and with the independent samples of L2X."
    )
    return Section("Find what decides", text, known_answers.table(rows))
