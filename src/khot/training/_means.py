"""Running mean of the weights, which moves less than they do and often generalises better."""

import copy

import torch
from torch import nn

_START = 10  # the mean is over one step in as many


class RunningMean:
    """Copy of a module whose state is a running mean of the module's state.

    The mean is over about the last ``1 / (1 - decay)`` steps, and at first over a tenth of all steps so far.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(module).requires_grad_(False)
        self._decay = decay

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        """Include the state of the module after `step` (counted from 0)."""
        share = max(1 - self._decay, _START / (_START + step))
        for mean, value in zip(self.module.state_dict().values(), module.state_dict().values(), strict=True):
            if mean.is_floating_point():
                mean.lerp_(value, share)
            else:
                mean.copy_(value)
