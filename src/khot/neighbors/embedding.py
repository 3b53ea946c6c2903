"""Rows become features, and features votes."""

import numpy as np
import torch
from torch import Tensor, nn

from khot.neighbors import votes
from khot.neighbors.scaling import Scaling
from khot.neighbors.search import nearest

_ROWS = 512  # embedded together


def embed(module: nn.Module, raw: np.ndarray, scaling: Scaling) -> Tensor:
    """Features (n, d) of raw rows, on the CPU."""
    device = next(module.parameters()).device
    pieces = (torch.from_numpy(raw[i : i + _ROWS].copy()).to(device) for i in range(0, len(raw), _ROWS))
    module.eval()
    with torch.no_grad():
        return torch.cat([module(scaling(piece)).float().cpu() for piece in pieces])


def share_right(queries: Tensor, labels: np.ndarray, references: Tensor, reference_labels: np.ndarray, k: int) -> float:
    """The share of queries (q, d) to which the k nearest references (n, d) give the right label."""
    distances, indices = nearest(queries, references, min(k, len(references)))
    classes = max(labels.max(), reference_labels.max()) + 1
    return float((votes.winners(reference_labels[indices.numpy()], distances.numpy(), classes) == labels).mean())
