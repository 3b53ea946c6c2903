"""The recursion of the successive softmax with 32 digits, for the rows that amplify rounding errors."""

from collections.abc import Iterator

import torch
from torch import Tensor

from khot.topk._rows import FLOOR
from khot.topk.successive import _torch_double_double as dd
from khot.topk.successive._torch_double_double import Pair
from khot.topk.successive._torch_split import Split
from khot.topk.successive._torch_step import Step


def run(items: Split, steps: int) -> Iterator[Step]:
    """The steps, computed in pairs of float64 numbers and rounded to one."""
    taken = dd.pair(items.start)
    for _ in range(steps):
        p, below, head, log_others, log_left, gap = _step(items, taken)
        taken = dd.add(taken, log_left)
        yield Step(p.value, below.value, head, log_others.value, log_left.value, gap)


def _step(items: Split, taken: Pair) -> tuple[Pair, Pair, Tensor, Pair, Pair, Tensor]:
    """The members of a `Step`, as pairs."""
    keys, present, many = items.keys, items.present, dd.pair(items.many)
    pivot = items.pivot(taken.hi)
    change = dd.subtract(taken, taken.map(lambda part: part.gather(-1, pivot)))
    gap = dd.add(dd.two_sum(keys, -keys.gather(-1, pivot)), change)
    below = dd.divide(gap, dd.pair(items.temperature.unsqueeze(-1).expand_as(keys)))
    below = Pair(below.hi.masked_fill(~present, FLOOR), below.lo.masked_fill(~present, 0))
    weight = dd.exp(below)
    p = dd.divide(weight, dd.total(dd.multiply(many, weight)).map(lambda part: part.expand_as(keys)))
    head = p.hi > 0.5
    head[:, items.active :] = False
    ones = dd.pair(torch.ones_like(keys))
    left = dd.subtract(ones, p)
    log_rest = dd.log(Pair(torch.where(head, 1, left.hi), torch.where(head, 0, left.lo)))
    log_others = _log_sum_exp(Pair(below.hi.masked_fill(head, FLOOR), below.lo.masked_fill(head, 0)), many)
    log_all = dd.log(dd.add(dd.exp(log_others), ones.map(lambda part: part[..., :1])))
    log_head = dd.subtract(log_others, log_all)
    log_left = Pair(torch.where(head, log_head.hi, log_rest.hi), torch.where(head, log_head.lo, log_rest.lo))
    apart, since = (x - x.gather(-1, pivot) for x in (keys, taken.hi - items.start))
    return p, below, head, log_others, log_left, apart + since


def _log_sum_exp(x: Pair, many: Pair) -> Pair:
    """Logarithm of the sum of many e^x over the last axis, kept with length 1, with a maximum of its own."""
    index = x.hi.argmax(-1, keepdim=True)
    largest = x.map(lambda part: part.gather(-1, index))
    weight = dd.exp(dd.subtract(x, largest.map(lambda part: part.expand_as(x.hi))))
    return dd.add(largest, dd.log(dd.total(dd.multiply(many, weight))))
