"""Running mean of the weights, which moves less than they do and often generalises better."""

import torch
from torch import nn

_START = 10  # the mean is over one step in as many


@torch.no_grad()
def update_mean(mean: nn.Module, module: nn.Module, decay: float, step: int) -> None:
    """Include the state of a module after `step` (counted from 0) in a copy whose state is the running mean.

    The mean is over about the last ``1 / (1 - decay)`` steps, and at first over a tenth of all steps so far.
    """
    share = max(1 - decay, _START / (_START + step))
    for kept, value in zip(mean.state_dict().values(), module.state_dict().values(), strict=True):
        if kept.is_floating_point():
            kept.lerp_(value, share)
        else:
            kept.copy_(value)
