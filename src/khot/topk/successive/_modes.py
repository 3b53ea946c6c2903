"""The three results of the successive softmax (k-hot vectors, ordered vectors, single entries) and their shapes."""

from collections.abc import Sequence

from torch import Tensor

from khot.topk.hard import one_hots
from khot.topk.successive._compiled.constants import SUM, VECTORS


def table_shape(shape: Sequence[int], steps: int, mode: int) -> tuple[int, ...]:
    """Shape of the result for keys of `shape` (rows, n): k-hot vectors, ordered vectors, or single entries."""
    rows, n = shape
    if mode == SUM:
        return rows, n
    return (rows, steps, n) if mode == VECTORS else (rows, steps)


def exact_table(keys: Tensor, k: Tensor, at: Tensor, steps: int, mode: int) -> Tensor:
    """The result for rows with fewer than k present items, which are taken one by one, the largest key first."""
    vectors = one_hots(keys, k, steps)
    if mode == SUM:
        return vectors.sum(1)
    if mode == VECTORS:
        return vectors
    return vectors.gather(-1, at.clamp_min(0).unsqueeze(-1)).squeeze(-1) * (at >= 0)
