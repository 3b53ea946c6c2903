"""The recursion of the successive softmax with 32 digits, for the rows that amplify rounding errors."""

import torch
from torch import Tensor

from khot.topk import _double_double as dd
from khot.topk._double_double import Pair
from khot.topk._rows import FLOOR


def forward(keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, ordered: bool) -> Tensor:
    """The k vectors (rows, steps, n) if `ordered`, or their sum (rows, n)."""
    taken = dd.pair(torch.zeros_like(keys))
    vectors = []
    for j in range(steps):
        p, log_left = _step(keys, taken, present, temperature)
        taken = dd.add(taken, log_left)
        alive = (j < k).unsqueeze(-1)
        vectors.append(p.map(lambda part, alive=alive: part * alive))
    if ordered:
        return torch.stack([vector.value for vector in vectors], 1)
    stacked = Pair(torch.stack([v.hi for v in vectors], -1), torch.stack([v.lo for v in vectors], -1))
    return dd.total(stacked).value.squeeze(-1)


def _step(keys: Tensor, taken: Pair, present: Tensor, temperature: Tensor) -> tuple[Pair, Pair]:
    """p and log(1 - p)."""
    pivot = (keys + taken.hi).masked_fill(~present, -torch.inf).argmax(-1, keepdim=True)
    at_pivot = taken.map(lambda part: part.gather(-1, pivot))
    gap = dd.add(dd.two_sum(keys, -keys.gather(-1, pivot)), dd.subtract(taken, at_pivot))
    below = dd.divide(gap, dd.pair(temperature.unsqueeze(-1).expand_as(keys)))
    below = Pair(below.hi.masked_fill(~present, FLOOR), below.lo.masked_fill(~present, 0))
    weight = dd.exp(below)
    p = dd.divide(weight, dd.total(weight).map(lambda part: part.expand_as(keys)))
    head = p.hi > 0.5
    ones = dd.pair(torch.ones_like(keys))
    left = dd.subtract(ones, p)
    log_rest = dd.log(Pair(torch.where(head, 1, left.hi), torch.where(head, 0, left.lo)))
    log_others = _log_sum_exp(Pair(below.hi.masked_fill(head, FLOOR), below.lo.masked_fill(head, 0)))
    log_all = dd.log(dd.add(dd.exp(log_others), ones.map(lambda part: part[..., :1])))
    log_head = dd.subtract(log_others, log_all)
    return p, Pair(torch.where(head, log_head.hi, log_rest.hi), torch.where(head, log_head.lo, log_rest.lo))


def _log_sum_exp(x: Pair) -> Pair:
    """Logarithm of the sum of e^x over the last axis, kept with length 1, with a maximum of its own."""
    index = x.hi.argmax(-1, keepdim=True)
    largest = x.map(lambda part: part.gather(-1, index))
    weight = dd.exp(dd.subtract(x, largest.map(lambda part: part.expand_as(x.hi))))
    return dd.add(largest, dd.log(dd.total(weight)))
