"""Explain what any model says about a row by the k items of the row that tell most about it."""

from khot.explain import fidelity
from khot.explain.explainer import SubsetExplainer
from khot.explain.explanation import Explanation
from khot.explain.maskers import Columns, Items, Masker, Patches, Sentences, Tokens, Words

__all__ = [
    "Columns",
    "Explanation",
    "Items",
    "Masker",
    "Patches",
    "Sentences",
    "SubsetExplainer",
    "Tokens",
    "Words",
    "fidelity",
]
