"""Keys to (relaxed) k-hot vectors: one relaxation in each file, all with the signature ``f(keys, k, temperature)``."""

from khot.topk.capped_simplex import capped_simplex
from khot.topk.hard import hard_topk, topk_indices
from khot.topk.neuralsort import neuralsort
from khot.topk.softsort import softsort
from khot.topk.successive import successive_softmax, successive_softmax_at

__all__ = [
    "capped_simplex",
    "hard_topk",
    "neuralsort",
    "softsort",
    "successive_softmax",
    "successive_softmax_at",
    "topk_indices",
]
