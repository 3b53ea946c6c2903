"""The relaxations of khot by name, without loading any: the table that tests, saved models and the command line follow.

A new one is a file in `khot.topk` and a row here. What it promises is an attribute of the function
(`khot.topk._traits`).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

RELAXATIONS = {
    "successive_softmax": "khot.topk.successive",
    "neuralsort": "khot.topk.neuralsort",
    "softsort": "khot.topk.softsort",
    "capped_simplex": "khot.topk.capped_simplex",
}


def find(name: str) -> Callable[..., Any]:
    """The relaxation with a name of the table."""
    return getattr(import_module(RELAXATIONS[name]), name)


def name_of(relaxation: Callable[..., Any]) -> str | None:
    """The name of one of khot's relaxations, None for a user's own."""
    name = getattr(relaxation, "__name__", None)
    return name if name in RELAXATIONS and find(name) is relaxation else None
