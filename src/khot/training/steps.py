"""What a loss knows about its step. All of it follows from the settings and the number of the step."""

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
        Number of steps before this one.
    epoch : int
        Number of epochs before this one.
    rows : Tensor
        Indices (b,) of the rows in the batch of this process.
    temperature : float
        Value of `Settings.temperature` at this step.
    generator : torch.Generator
        Source of noise for this step, on the device of the batch; different in every process.
    """

    number: int
    epoch: int
    rows: Tensor
    temperature: float
    generator: torch.Generator


def key(*parts: object) -> int:
    """Seed of 63 bits, which is the same for the same parts."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()) >> 1
