"""Parts of kernels, which Python cannot call, for tests."""

from collections.abc import Callable
from typing import Any

from numba import njit


def from_python(part: Any) -> Callable[..., Any]:
    """A function that calls a part."""
    return njit(lambda *arguments: part(*arguments))
