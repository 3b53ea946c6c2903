"""Optimizers as values, which are called with a module's parameters. The learning rate comes from the settings.

Any other function from parameters to a `torch.optim.Optimizer` works as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.nn import Parameter

_NO_RATE_YET = 0.0  # the loop sets the rate before every step


@dataclass(frozen=True)
class SGD:
    """Gradient descent, optionally with momentum.

    >>> SGD(momentum=0.9)
    SGD(momentum=0.9, nesterov=False, weight_decay=0.0)
    """

    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __call__(self, parameters: Iterable[Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            parameters, _NO_RATE_YET, self.momentum, weight_decay=self.weight_decay, nesterov=self.nesterov
        )


@dataclass(frozen=True)
class Adam:
    """Adam. `weight_decay` is added to the gradient."""

    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    _kind: ClassVar[Any] = torch.optim.Adam

    def __call__(self, parameters: Iterable[Parameter]) -> torch.optim.Optimizer:
        parameters = list(parameters)
        options = {"betas": self.betas, "eps": self.epsilon, "weight_decay": self.weight_decay}
        return self._kind(parameters, lr=_NO_RATE_YET, fused=_fused(parameters), **options)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay, which shrinks the weights themselves."""

    weight_decay: float = 0.01

    _kind = torch.optim.AdamW


@dataclass(frozen=True)
class RMSprop:
    """Gradients divided by the root of a running mean of their squares, with a given `decay` of the mean."""

    decay: float = 0.9
    epsilon: float = 1e-7
    weight_decay: float = 0.0

    def __call__(self, parameters: Iterable[Parameter]) -> torch.optim.Optimizer:
        return torch.optim.RMSprop(parameters, _NO_RATE_YET, self.decay, self.epsilon, self.weight_decay)


def _fused(parameters: list[Parameter]) -> bool | None:
    """Whether a step is a single pass over the parameters, which takes a tenth of the time on the CPU.

    None lets torch choose elsewhere, because fused optimizers do not support clipped gradients in mixed precision.
    """
    return all(p.device.type == "cpu" and p.is_floating_point() for p in parameters) or None
