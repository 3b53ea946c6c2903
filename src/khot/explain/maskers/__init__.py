"""Maskers define the items of a row, and what remains of the row if only some of them are kept.

Any class with the methods of `Masker` can serve as one.
"""

from khot.explain.maskers.columns import Columns
from khot.explain.maskers.items import Items, Masker
from khot.explain.maskers.patches import Patches
from khot.explain.maskers.sentences import Sentences
from khot.explain.maskers.tokens import Tokens
from khot.explain.maskers.words import Words

__all__ = ["Columns", "Items", "Masker", "Patches", "Sentences", "Tokens", "Words"]
