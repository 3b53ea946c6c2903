"""Keys of the counter-based generator from seeds."""

import hashlib
import secrets
from typing import Any

from khot.errors import InvalidTypeError, InvalidValueError


def checked(seed: Any) -> int:
    """A seed, drawn from the system if it is None."""
    if seed is None:
        return secrets.randbits(63)
    if not hasattr(seed, "__index__") or isinstance(seed, bool):
        raise InvalidTypeError(f"seed must be a whole number or None, but got {seed!r}: pass such as 0")
    if seed.__index__() < 0:
        raise InvalidValueError(f"seed must be at least 0, but got {seed!r}: pass such as 0")
    return seed.__index__()


def key(seed: int, purpose: str = "rows") -> tuple[int, int]:
    """Two words of 64 bits for a seed and a purpose, the same in all versions of khot."""
    digest = hashlib.sha256(f"khot reservoir 1 {purpose} {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")
