"""What may be a mistake, though an explainer can be trained."""

import warnings

import torch
from torch import Tensor

_LEARNT = 0.02  # of what can be learnt
_NOTHING = 1e-4  # is to be learnt where the model always says the same


def warn_of_nothing_to_choose(eligible: Tensor, forced: Tensor, k: int) -> None:
    """Of flags (n, items) of what may and what must be chosen."""
    wanted = k - forced.sum(1)
    if bool((wanted == 0).all()):
        warnings.warn(f"all of the k = {k} items of each row are forced: raise k, or force fewer", stacklevel=3)
    elif bool(((eligible & ~forced).sum(1) <= wanted).all()):
        warnings.warn(f"no row has more than k = {k} items, so that all are chosen: lower k", stacklevel=3)


def warn_of_nothing_learnt(kept: Tensor, held_out: Tensor, loss: float | None) -> None:
    """Compare the loss with that of always saying the mean of the outputs (n, classes), and with the least possible."""
    constant = -torch.xlogy(held_out, kept.mean(0)).sum(1).mean().item()
    least = torch.special.entr(held_out).sum(1).mean().item()
    if loss is not None and constant - least > _NOTHING and constant - loss < _LEARNT * (constant - least):
        warnings.warn(
            f"the predictor hardly knows from the chosen items what the black box says: its loss on held-out rows is "
            f"{loss:.4f}, that of always saying the same {constant:.4f}; take more rows, more epochs, or a larger k",
            stacklevel=4,
        )
