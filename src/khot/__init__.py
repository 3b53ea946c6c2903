"""Differentiable subset sampling: weights become keys, keys a (relaxed) k-hot vector, k-hot vectors a distribution."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from khot._jit import forks  # noqa: F401  watches from here on

__version__ = "0.1.0"

if TYPE_CHECKING:
    from khot import (
        datasets,
        distributions,
        embed,
        errors,
        explain,
        neighbors,
        nn,
        reservoir,
        schedules,
        topk,
        training,
    )
    from khot._warmup import warmup
    from khot.distributions import OrderedSubset, RelaxedOrderedSubset, RelaxedSubset, Subset
    from khot.keys import gumbel_keys, reservoir_keys
    from khot.reservoir import sample_indices
    from khot.sampling import sample_subset
    from khot.topk import capped_simplex, hard_topk, neuralsort, softsort, successive_softmax, successive_softmax_at

__all__ = [
    "OrderedSubset",
    "RelaxedOrderedSubset",
    "RelaxedSubset",
    "Subset",
    "capped_simplex",
    "datasets",
    "distributions",
    "embed",
    "errors",
    "explain",
    "gumbel_keys",
    "hard_topk",
    "neighbors",
    "neuralsort",
    "nn",
    "reservoir",
    "reservoir_keys",
    "sample_indices",
    "sample_subset",
    "schedules",
    "softsort",
    "successive_softmax",
    "successive_softmax_at",
    "topk",
    "training",
    "warmup",
]

_HOME = {
    "khot.keys": ["gumbel_keys", "reservoir_keys"],
    "khot.topk": [
        "hard_topk",
        "successive_softmax",
        "successive_softmax_at",
        "neuralsort",
        "softsort",
        "capped_simplex",
    ],
    "khot.reservoir": ["sample_indices"],
    "khot.sampling": ["sample_subset"],
    "khot._warmup": ["warmup"],
    "khot.distributions": ["Subset", "OrderedSubset", "RelaxedSubset", "RelaxedOrderedSubset"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; torch loads no earlier than that."""
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name in __all__:
        value = import_module(f"khot.{name}")
    else:
        raise AttributeError(f"module 'khot' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
