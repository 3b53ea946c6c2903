"""Maskers: what the items of a row are, and what is left of the row if only some of them are kept.

A masker of your own is any class with the methods of `Masker`.
"""

from khot.explain.maskers.columns import Columns
from khot.explain.maskers.items import Items, Masker
from khot.explain.maskers.patches import Patches
from khot.explain.maskers.sentences import Sentences
from khot.explain.maskers.tokens import Tokens
from khot.explain.maskers.words import Words

__all__ = ["Columns", "Items", "Masker", "Patches", "Sentences", "Tokens", "Words"]
