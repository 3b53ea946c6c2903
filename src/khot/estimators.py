"""What the scikit-learn faces of the applications share."""

from typing import Any

import torch
from sklearn.utils import check_random_state

from khot.errors import InvalidValueError


def draw_seed(random_state: Any) -> int:
    """The seed of a training.

    >>> draw_seed(0) == draw_seed(0)
    True
    """
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidValueError(
            f"random_state must be an int from 0 to 2^32 - 1, a RandomState or None, but got {random_state!r}: pass one"
        ) from error


def find_device(name: str) -> torch.device:
    """The device of a name; that of "auto" is the CPU where there is no other."""
    there = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    if name not in ("cpu", "auto", there.type):
        raise InvalidValueError(f"device {name!r} is not available, but {there.type!r} is: pass that, or 'auto'")
    return torch.device("cpu") if name == "cpu" else there


def as_array(value: Any) -> Any:
    """Tensors as arrays; the rest is for scikit-learn to judge."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def in_one_line(error: ValueError) -> str:
    """What scikit-learn found; of missing values it would go on for a page."""
    message = str(error)
    if "contains NaN" in message or "contains infinity" in message:
        return f"{message.splitlines()[0].rstrip('.')}: fill in or leave out such rows"
    return message.replace("\n", " ")
