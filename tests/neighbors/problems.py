"""Small data and classifiers that the tests share."""

import numpy as np
import torch
from torch import nn

import khot
from khot.neighbors import SubsetKNNClassifier

DIGITS = khot.datasets.load("digits")
PIXELS = DIGITS.train.inputs.reshape(-1, 64)
TEST_PIXELS = DIGITS.test.inputs.reshape(-1, 64)
WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def blobs(rows: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds in four dimensions."""
    noise = np.random.default_rng(seed)
    labels = np.arange(rows) % 3
    return noise.normal(size=(rows, 4)) + 3 * np.eye(3, 4)[labels], labels


def quick(**options) -> SubsetKNNClassifier:
    """A classifier whose training takes a moment."""
    settings = {"n_neighbors": 3, "epochs": 2, "batch_size": 20, "n_candidates": 20, "random_state": 0, **options}
    return SubsetKNNClassifier(**settings)


def own_encoder() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
