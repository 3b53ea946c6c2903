"""Rows and models of which the answer is known, and an explainer that trains quickly."""

import numpy as np

from khot.explain import SubsetExplainer

NOISE = np.random.RandomState(0)
X = NOISE.randn(600, 5)
WORDS = np.array(["plot", "actor", "scene", "music", "dull", "great", "fine", "poor"])
TEXTS = [  # one word decides, wherever it stands
    " ".join(NOISE.permutation([*NOISE.choice(WORDS[:4], NOISE.randint(1, 9)), word]))
    for word in NOISE.choice(WORDS[4:], 600)
]


def from_last_column(rows):
    p = 1 / (1 + np.exp(-6 * np.asarray(rows)[:, 4]))
    return np.stack([1 - p, p], 1)


def from_words(rows):
    good = np.array([("great" in text) + ("fine" in text) - ("dull" in text) - ("poor" in text) for text in rows])
    p = 1 / (1 + np.exp(-3.0 * good))
    return np.stack([1 - p, p], 1)


def in_the_middle(rows):
    if rows[0, 0] == X[256, 0]:
        raise ConnectionError("timed out")
    return from_last_column(rows)


def quick(k=1, **options):
    return SubsetExplainer(k, **{"temperature": 0.5, "epochs": 8, "batch_size": 50, "patience": None} | options)
