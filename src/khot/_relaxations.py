"""The table of relaxations by name, which tests, saved models and the command line read.

A new relaxation is a file in `khot.topk` and a row here. Its promises are an attribute of the function
(`khot.topk._traits`).
"""

import warnings
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
    """Load the relaxation with this name."""
    return getattr(import_module(RELAXATIONS[name]), name)


def name_of(relaxation: Callable[..., Any]) -> str | None:
    """The name of a relaxation of khot; None for a user's own function."""
    name = getattr(relaxation, "__name__", None)
    return name if name in RELAXATIONS and find(name) is relaxation else None


def name_to_save(relaxation: Callable[..., Any]) -> str | None:
    """The name of a relaxation for a saved model, with a warning if it is a user's own function."""
    name = name_of(relaxation)
    if name is None:
        warnings.warn(
            "relaxation is a function of your own, which is not saved: set it again after loading the model",
            UserWarning,
            stacklevel=4,
        )
    return name
