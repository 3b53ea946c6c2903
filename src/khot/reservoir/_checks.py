"""Checks of numbers, without torch."""

import secrets
from typing import Any

from khot.errors import InvalidTypeError, InvalidValueError


def whole(name: str, value: Any, least: int) -> int:
    """Check a whole number."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a whole number, but got {value!r}: pass such as 10")
    if value.__index__() < least:
        raise InvalidValueError(f"{name} must be at least {least}, but got {value!r}: pass a larger one")
    return value.__index__()


def seed(value: Any) -> int:
    """Check a seed; None is replaced by one that the system draws."""
    return secrets.randbits(63) if value is None else whole("seed", value, 0)
