"""Alternatives to SubsetSNE: umap-learn and openTSNE in two dimensions, with the same rows and measures.

`khot reproduce embed --profile full` has khot's own rows.
"""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.common import write
from khot.experiments.embed import PLANS, measure, rows_of

Fit = Callable[[np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]


def umap(train: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    from umap import UMAP

    model = UMAP(random_state=0, n_jobs=1).fit(train)
    return model.embedding_, model.transform


def open_tsne(train: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    from openTSNE import TSNE

    points = TSNE(random_state=0, n_jobs=-1).fit(train)
    return np.asarray(points), lambda rows: np.asarray(points.transform(rows))


PEERS: dict[str, Fit] = {"umap-learn": umap, "openTSNE": open_tsne}


def main() -> None:
    claims = []
    for dataset in ("20newsgroups", "mnist"):
        train, test, _ = rows_of(dataset, PLANS["full", dataset], split=0)
        for name, fit in PEERS.items():
            began = time.perf_counter()
            try:
                points, transform = fit(train.inputs)
            except ImportError as error:
                print(f"  {name} is left out: {error}")
                continue
            others = transform(test.inputs)
            minutes = (time.perf_counter() - began) / 60
            trust, error = measure(train, test, points, others)
            claims += [
                {"what": f"{dataset}, {name}: trustworthiness", "measured": trust, "minutes": minutes},
                {"what": f"{dataset}, {name}: 1-NN error, %", "measured": error},
            ]
    write("embeddings", claims)


if __name__ == "__main__":
    main()
