"""What a loss gets to know about its step. All of it follows from the settings and the number of the step."""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Step:
    """One training step.

    Attributes
    ----------
    number : int
        Steps before this one.
    epoch : int
        Epochs before this one.
    rows : Tensor
        The rows (b,) of the data that this process has in its batch.
    temperature : float
        That of `Settings.temperature` at this step.
    generator : torch.Generator
        Noise of this step, on the device of the batch; each process has its own.
    """

    number: int
    epoch: int
    rows: Tensor
    temperature: float
    generator: torch.Generator


def key(*parts: object) -> int:
    """A seed of 63 bits, the same for the same parts."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()) >> 1
