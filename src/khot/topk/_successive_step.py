"""One softmax of the recursion, for a table of rows in float64, and its reverse."""

from typing import NamedTuple

import torch
from torch import Tensor

from khot.topk._rows import ABSENT, FLOOR

_LARGEST = 1e200  # cotangents saturate here: times n it is still far from overflow


class Step(NamedTuple):
    """What a step computed. A *head* is the one item of a row with p > 1/2, where there is one."""

    p: Tensor  # (rows, n)
    below: Tensor  # (rows, n), how far alpha / temperature lies below its maximum, <= 0
    head: Tensor  # (rows, n) bool
    log_others: Tensor  # (rows, 1), log of the total weight of all but the head, the head's weight being 1
    log_left: Tensor  # (rows, n), log(1 - p)

    @property
    def left(self) -> Tensor:
        """1 - p, to full relative precision."""
        return torch.where(self.head, torch.sigmoid(self.log_others), 1 - self.p)

    @property
    def share(self) -> Tensor:
        """Weight among the items other than the head, in rows that have one; 0 for the head."""
        return torch.exp(self.below - self.log_others).masked_fill(self.head, 0)


def step(keys: Tensor, taken: Tensor, present: Tensor, temperature: Tensor) -> Step:
    """The softmax of alpha = keys + taken, `taken` being the sum of log(1 - p) over the earlier steps."""
    alpha = (keys + taken).masked_fill(~present, ABSENT)
    pivot = alpha.argmax(-1, keepdim=True)
    gap = (keys - keys.gather(-1, pivot)) + (taken - taken.gather(-1, pivot))
    below = (gap / temperature.unsqueeze(-1)).clamp(FLOOR, -FLOOR).masked_fill(~present, ABSENT)
    below = (below - below.amax(-1, keepdim=True)).clamp_min(FLOOR)
    weight = below.exp()
    p = weight / weight.sum(-1, keepdim=True)
    head = p > 0.5
    # For the head, log(1 - p) is log(others) - log(others + 1): 1 - p itself has no digits left when p is close to 1.
    # Where no item has p > 1/2, log1p serves all alike, so that equal keys stay exactly equal.
    log_others = below.masked_fill(head, -torch.inf).logsumexp(-1, keepdim=True).clamp_min(FLOOR)
    log_left = torch.where(head, log_others - log_others.exp().log1p(), torch.log1p(-p))
    return Step(p, below, head, log_others, log_left)


def reverse_step(step: Step, grad_p: Tensor, grad_alpha: Tensor, temperature: Tensor) -> Tensor:
    """Cotangent of alpha before the step, from those of p and of alpha after it. Nothing divides by 1 - p of a head."""
    p, head = step.p, step.head
    p_head, g_head, a_head = ((x * head).sum(-1, keepdim=True) for x in (p, grad_p, grad_alpha))
    p_bar = torch.where(head, 0, grad_p - grad_alpha / (1 - p))
    mean = (p * p_bar).sum(-1, keepdim=True)
    at_rest = p * (p_bar - p_head * g_head - mean) + p_head * step.share * a_head
    at_head = p_head * (step.left * g_head - a_head - mean)
    change = torch.where(head, at_head, at_rest) / temperature.unsqueeze(-1)
    return (grad_alpha + change).clamp(-_LARGEST, _LARGEST)
