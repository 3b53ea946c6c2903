"""Small data and embeddings that the tests share."""

import numpy as np
import torch
from torch import nn

from khot.embed import ParametricTSNE, SigmoidNet, SubsetSNE

BOTH = [SubsetSNE, ParametricTSNE]


def clouds(rows: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds in five dimensions, and which one each row is of."""
    noise = np.random.default_rng(seed)
    labels = np.arange(rows) % 3
    return (noise.normal(size=(rows, 5)) + 6 * np.eye(3, 5)[labels]).astype(np.float32), labels


def quick(kind=SubsetSNE, **options):
    """An embedding whose training takes a moment."""
    settings = {"perplexity": 5, "batch_size": 30, "epochs": 2, "random_state": 0}
    settings |= {"encoder": tiny(), "pretrain": False, "pretrain_epochs": 1}
    return kind(**{**settings, **options})


def tiny(outputs: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return SigmoidNet(5, (8, 6), outputs)
