"""The table of the README: a line for each result of the paper, and what it is compared with."""

from benchmarks.tables import paper
from benchmarks.tables.cells import against, result, short, table

_NOTES = (
    "↓: worse than the paper. ±: for 20 Newsgroups the standard deviation over five divisions of the data, for film\n"
    "reviews half of the 95% interval."
)
_REMARKS = " (below the paper)", " (above the paper)"


def summary() -> str:
    """What khot reaches, what the paper reports, and what other methods reach in khot and in the paper."""
    rows = [_synthetic(), _timing(), *_knn(), *_embeddings(), *_explanations()]
    heads = ["", "khot", "paper", "compared with (paper)"]
    return table(heads, ([_marked(cell) for cell in row] for row in rows)) + "\n\n" + _NOTES


def _marked(cell: str) -> str:
    for remark in _REMARKS:
        cell = cell.replace(remark, " ↓")
    return cell


def _synthetic() -> list[str]:
    found = result("synthetic")
    bound, temperatures = found["paper_distance"], ", ".join(f"{t:g}" for t in found["temperatures"])
    ours = ", ".join(against(own["distance"], bound, 4, most=False) for own in found["relaxed"])
    return [f"distance of sampled subsets from the exact law, t = {temperatures}", ours, f"≤ {bound}", ""]


def _timing() -> list[str]:
    rows = [row for row in result("timing")["rows"] if row["operator"] == "khot.successive_softmax"]
    row = max(rows, key=lambda own: own["m"])
    ours, theirs, _ = paper.times_faster(row)
    alone = short(row["operator_times_faster"]["mean"])
    name = f"times faster than NeuralSort as published, {row['m']:,} candidates"
    return [name, f"{ours}; {alone} without the network", theirs, ""]


def _knn() -> list[list[str]]:
    rows, found = [], paper.classifiers()
    for row in (row for row in found if row["method"] == "subset"):
        others = [other for other in found if other["dataset"] == row["dataset"] and other["method"] != "subset"]
        compared = "; ".join(f"{paper.CLASSIFIERS[own['method']]} {_pair(*paper.accuracy(own))}" for own in others)
        name = f"{paper.DATASETS[row['dataset']]}, nearest neighbours, {paper.epochs(row)} epochs: accuracy, %"
        rows.append([name, *paper.accuracy(row), compared if row["profile"] == "full" else ""])
    return rows


def _embeddings() -> list[list[str]]:
    rows = []
    for dataset in ("mnist", "20newsgroups"):
        for dimensions in (2, 10, 30):
            trust, paper_trust, error, paper_error = paper.embedding(dataset, "subset-ours", dimensions)
            t = paper.embedding(dataset, "tsne", dimensions)
            name = f"{paper.DATASETS[dataset]} in {dimensions} dimensions: trustworthiness, 1-NN error, %"
            compared = f"t-SNE {t[0]}, {t[2]} ({t[1]}, {t[3]})"
            rows.append([name, f"{trust}, {error}", f"{paper_trust}, {paper_error}", compared])
    return rows


def _explanations() -> list[list[str]]:
    rows = []
    for task, name in (("imdb-word", "10 words"), ("imdb-sent", "one sentence")):
        ours, other = (result(f"explain-{task}-{method}") for method in ("subset", "l2x"))
        compared = f"L2X {_pair(*paper.agreement(other))}"
        rows.append([f"film reviews explained by {name}: same class, %", *paper.agreement(ours), compared])
    return rows


def _pair(ours: str, theirs: str) -> str:
    return f"{ours} ({theirs})"
