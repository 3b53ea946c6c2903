"""One softmax of the recursion, for a table of rows in float64, and its reverse."""

from typing import NamedTuple

import torch
from torch import Tensor

from khot.topk._rows import ABSENT, FLOOR
from khot.topk.successive._compiled.constants import LARGEST
from khot.topk.successive._torch_split import Split


class Step(NamedTuple):
    """What a step computed. A *head* is the one active item of a row with p > 1/2, where there is one."""

    p: Tensor  # (rows, M)
    below: Tensor  # (rows, M), how far alpha / temperature lies below its maximum, <= 0
    head: Tensor  # (rows, M) bool
    log_others: Tensor  # (rows, 1), log of the total weight of all but the head, the head's weight being 1
    log_left: Tensor  # (rows, M), log(1 - p)
    gap: Tensor  # (rows, M), how far alpha, less its start, lies below

    @property
    def left(self) -> Tensor:
        """1 - p, to full relative precision."""
        return torch.where(self.head, torch.sigmoid(self.log_others), 1 - self.p)

    @property
    def share(self) -> Tensor:
        """Weight among the items other than the head, in rows that have one; 0 for the head."""
        return torch.exp(self.below - self.log_others).masked_fill(self.head, 0)


def step(items: Split, taken: Tensor) -> Step:
    """The softmax of alpha = keys + taken, `taken` being the start and the sum of log(1 - p) over the earlier steps."""
    keys, present, temperature = items.keys, items.present, items.temperature.unsqueeze(-1)
    pivot = items.pivot(taken)
    apart, change, since = (x - x.gather(-1, pivot) for x in (keys, taken, taken - items.start))
    below = ((apart + change) / temperature).clamp(FLOOR, -FLOOR)
    below = below.masked_fill(~present, ABSENT)
    below = (below - below.amax(-1, keepdim=True)).clamp_min(FLOOR)
    weight = below.exp()
    p = weight / (items.many * weight).sum(-1, keepdim=True)
    head = p > 0.5
    head[:, items.active :] = False
    # For the head, log(1 - p) is log(others) - log(others + 1): 1 - p itself has no digits left when p is close to 1.
    # Where no item has p > 1/2, log1p serves all alike, so that equal keys stay exactly equal.
    second = below.masked_fill(head, ABSENT).amax(-1, keepdim=True).clamp_min(FLOOR)
    others = (items.many * (below - second).exp()).masked_fill(head, 0).sum(-1, keepdim=True)
    log_others = (second + others.log()).clamp_min(FLOOR)
    log_left = torch.where(head, log_others - log_others.exp().log1p(), torch.log1p(-p.clamp_max(0.5)))
    return Step(p, below, head, log_others, log_left, apart + since)


def reverse_step(items: Split, step: Step, grad_p: Tensor, grad_alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Cotangents of alpha before the step, and of `many`, from those of p and of alpha after it.

    Nothing divides by 1 - p of a head.
    """
    p, head = step.p, step.head
    p_head, g_head, a_head = ((x * head).sum(-1, keepdim=True) for x in (p, grad_p, grad_alpha))
    p_bar = torch.where(head, 0, grad_p - grad_alpha / (1 - p))
    mean = (p * p_bar).sum(-1, keepdim=True)
    through_sum = p_head * step.share * a_head - p * (p_head * g_head + mean)
    at_head = p_head * (step.left * g_head - a_head - mean)
    change = torch.where(head, at_head, p * p_bar + items.many * through_sum) / items.temperature.unsqueeze(-1)
    return (grad_alpha + change).clamp(-LARGEST, LARGEST), through_sum.masked_fill(head, 0)
