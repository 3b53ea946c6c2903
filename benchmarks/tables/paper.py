"""The tables and figures of the paper, from `results/*.json`, which `khot reproduce` writes.

The paper's numbers stand in the same files: they are constants of the modules of `khot.experiments`.
"""

from typing import Any

from benchmarks.tables.cells import ROOT, against, result, short, table

Row = dict[str, Any]

DATASETS = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "20newsgroups": "20 Newsgroups"}
CLASSIFIERS = {"subset": "subset", "neuralsort": "NeuralSort", "cnn": "plain network"}
EMBEDDINGS = {
    "subset-ours": "tuned",
    "subset-pretrain": "the paper's settings",
    "subset": "the paper's settings, not pretrained",
    "subset-reversed": "the paper's settings, noise of the wrong sign",
    "tsne": "parametric t-SNE",
}
_OPERATORS = {"khot.neuralsort": "NeuralSort as published", "khot.successive_softmax": "textbook successive softmax"}
_ABLATED = {"subset": "SubsetSNE", "tsne": "ParametricTSNE"}
_EXPLAINERS = {"subset": "subset", "l2x": "L2X", "subset-for-class": "subset, `for_class=True`"}
_TASKS = {"imdb-word": "10 words", "imdb-sent": "one sentence"}


def synthetic() -> str:
    """Total variation distance between sampled subsets and the exact law, for each temperature."""
    found = result("synthetic")
    bound = found["paper_distance"]
    rows = [
        [f"khot, {name}", *(against(own["distance"], bound, 4, most=False) for own in found[kind])]
        for kind, name in (("relaxed", "top k of the relaxed vector"), ("hard", "hard samples"))
    ]
    rows.append(["paper", *(f"≤ {bound}" for _ in found["temperatures"])])
    return table(["", *(f"t = {t:g}" for t in found["temperatures"])], rows)


def timing() -> str:
    """Milliseconds of one query of the nearest-neighbour experiment, and times faster than NeuralSort as published."""
    rows = []
    for row in result("timing")["rows"]:
        milliseconds = [short(1e3 * row[f"{part}_seconds"]["mean"]) for part in ("operator", "encoder", "total")]
        rows.append([f"{row['m']:,}", row["operator"], *milliseconds, *times_faster(row)])
    heads = ["candidates", "operator", "operator, ms", "network, ms", "total, ms", "total, times faster"]
    return table([*heads, "paper, times faster (GPU)", "paper, total, ms"], rows)


def times_faster(row: Row) -> list[str]:
    """How much faster a query is than with NeuralSort as published, also in the paper, and the paper's milliseconds."""
    operator = _OPERATORS.get(row["operator"], row["operator"])
    rows = result("timing")["rows"]
    paper = next(own for own in rows if own["m"] == row["m"] and own["operator"] == operator)
    ours = against(row["total_times_faster"]["mean"], paper["paper_times_faster"], 1)
    return [ours, f"{paper['paper_times_faster']:.1f}", short(1e3 * paper["paper_seconds"])]


def knn() -> str:
    """Test accuracy of stochastic nearest neighbours and of the two methods that they are compared with."""
    rows = [
        [DATASETS[row["dataset"]], CLASSIFIERS[row["method"]], *accuracy(row), str(epochs(row)), _minutes(row)]
        for row in classifiers()
    ]
    return table(["", "method", "khot, %", "paper, %", "epochs", "training, minutes"], rows)


def classifiers() -> list[Row]:
    """The results of nearest neighbours, in the order of the table."""
    places = [
        f"knn-{dataset}-{method}{profile}"
        for dataset in DATASETS
        for method in CLASSIFIERS
        for profile in ("", "-long")
    ]
    return [result(name) for name in places if (ROOT / "results" / f"{name}.json").exists()]


def accuracy(row: Row) -> list[str]:
    """Accuracy in percent, ours and the paper's."""
    paper = row["paper_accuracy"]
    return [against(row["test_accuracy"], paper, 2, compared=1), f"{paper:.1f}"]


def epochs(row: Row) -> int:
    """How many epochs an encoder of neighbours was trained for."""
    return sum(stage["epochs"] for stage in row["settings"]["stages"])


def embeddings() -> str:
    """Trustworthiness and nearest-neighbour error of embedded test rows.

    The paper has no "tuned" and no noise of the wrong sign: both are compared with its pretrained embedding.
    """
    rows = [
        [DATASETS[dataset], str(dimensions), name, *embedding(dataset, method, dimensions)]
        for dataset in ("mnist", "20newsgroups")
        for dimensions in (2, 10, 30)
        for method, name in EMBEDDINGS.items()
        if dimensions == 2 or method != "subset-reversed"
    ]
    return table(["", "d", "method", "trustworthiness", "paper", "1-NN error, %", "paper"], rows)


def embedding(dataset: str, method: str, dimensions: int) -> list[str]:
    """Trustworthiness, the paper's, error in percent, the paper's.

    If there are several divisions of the data, ours are means with standard deviations.
    """
    ours = result(f"embed-{dataset}-{method}-d{dimensions}")
    paper = ours["paper"] or result(f"embed-{dataset}-subset-pretrain-d{dimensions}")["paper"]
    trust, error = paper["trustworthiness"], paper["knn_error"]
    cells = [against(ours["trustworthiness"], trust, 4, compared=3), against(ours["knn_error"], error, 2, most=False)]
    if ours["spread"]:
        spread = f"{ours['spread']['trustworthiness']:.4f}", f"{ours['spread']['knn_error']:.2f}"
        cells = [_with_spread(*pair) for pair in zip(cells, spread, strict=True)]
    return [cells[0], f"{trust:.3f}", cells[1], f"{error:.2f}"]


def embedding_ablation() -> str:
    """What each change from the paper's settings to the tuned ones brings; each row has the changes above it."""
    rows = [
        [_ABLATED[row["method"]], row["change"], f"{row['trustworthiness']:.3f}", f"{row['knn_error']:.1f}"]
        for row in result("embed-ablation")["rows"]
    ]
    return table(["", "change", "trustworthiness", "1-NN error, %"], rows)


def explanations() -> str:
    """How often the model predicts the same class from the chosen items of film reviews alone."""
    rows = []
    for task, name in _TASKS.items():
        for method, label in _EXPLAINERS.items():
            if (ROOT / "results" / f"explain-{task}-{method}.json").exists():
                row = result(f"explain-{task}-{method}")
                others = [f"{row['references'][kind]:.1f}" for kind in ("random", "gradient")]
                rows.append([name, label, *agreement(row), *others, _minutes(row)])
    heads = ["", "method", "khot, %", "paper, %", "random items, %", "largest gradients, %", "training, minutes"]
    return table(heads, rows)


def agreement(row: Row) -> list[str]:
    """How often the model predicts the same class, in percent, with its interval, and the paper's."""
    mean, half, paper = row["post_hoc_accuracy"], (row["interval"][1] - row["interval"][0]) / 2, row["paper_accuracy"]
    if paper is None:
        return [f"{mean:.2f} ± {half:.2f}", ""]
    return [_with_spread(against(mean, paper, 2, compared=1), f"{half:.2f}"), f"{paper:.1f}"]


def known_answers() -> str:
    """Median rank of the features that decide, in four problems whose answer is known."""
    found: dict[str, Row] = {}
    for row in result("known-answers")["rows"]:
        found.setdefault(row["problem"], {"optimum": row["optimum"]})[row["method"]] = row["median_rank"]
    rows = [
        [name, f"{own['optimum']:g}", *(f"{own[method]:.2f}" for method in ("subset", "l2x"))]
        for name, own in found.items()
    ]
    return table(["", "best possible", "khot, subset", "khot, L2X"], rows)


def _with_spread(cell: str, spread: str) -> str:
    """A cell of `against` with a spread after the number."""
    number, *remark = cell.split(" ", 1)
    return " ".join([number, f"± {spread}", *remark])


def _minutes(row: Row) -> str:
    return f"{row['minutes']:.0f}" if row["processor_minutes"] is None else f"{row['processor_minutes']:.0f} of a core"
