"""Explain the predictions of any model by the k items of a row that are most informative about them."""

from khot.explain import fidelity
from khot.explain.estimator import SubsetExplainer
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
