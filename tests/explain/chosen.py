"""Texts, and flags of chosen items, for the tests of maskers."""

import numpy as np

TEXTS = ["The film, frankly, wasn't good.", "Good!", "", "A good   film?  Yes.\nReally (truly)."]
HALF = np.array([[True, False], [False, True]])


def flags(items: int, *chosen: int) -> np.ndarray:
    return np.isin(np.arange(items), chosen)[None]
