"""The successive softmax of a table of rows in torch operations, for any device: O(n + k M) memory, M about 3k."""

from collections.abc import Iterator

import torch
from torch import Tensor

from khot.topk.successive._compiled.constants import PROMISE, PROMISE_NARROW, SUM, VECTORS
from khot.topk.successive._modes import table_shape
from khot.topk.successive._torch_loop import Rows, Solved, solve
from khot.topk.successive._torch_split import Split
from khot.topk.successive._torch_step import reverse_step


def forward(keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int) -> Tensor:
    """The tables of all rows, in float64; 0 in short rows, whatever in those with NaN."""
    out = keys.new_zeros(table_shape(keys.shape, steps, mode), dtype=torch.float64)
    for solved in _solved(keys, k, temperature, steps):
        total = torch.zeros_like(solved.items.keys)
        for j, now in enumerate(solved.run(steps)):
            p = now.p * (j < solved.rows.k).unsqueeze(-1)
            if mode == SUM:
                total += p
            elif mode == VECTORS:
                out[solved.which, j] = solved.items.spread(p)
            else:
                out[solved.which, j] = (p * _marks(solved.items, at[solved.which, j])).sum(-1)
        if mode == SUM:
            out[solved.which] = solved.items.spread(total)
    return out


def backward(
    keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, grad: Tensor, steps: int, mode: int
) -> tuple[Tensor, Tensor]:
    """Gradients in the keys (rows, n) and in the temperature (rows,), in float64."""
    grad_keys = torch.zeros_like(keys, dtype=torch.float64)
    grad_temperature = torch.zeros_like(temperature)
    for solved in _solved(keys, k, temperature, steps):
        part = _backward(solved, at[solved.which], grad[solved.which].double(), steps, mode)
        grad_keys[solved.which], grad_temperature[solved.which] = part
    return grad_keys, grad_temperature


def _backward(solved: Solved, at: Tensor, grad: Tensor, steps: int, mode: int) -> tuple[Tensor, Tensor]:
    items, k = solved.items, solved.rows.k
    alpha, many = torch.zeros_like(items.keys), torch.zeros_like(items.keys)
    passive, total = torch.zeros_like(solved.rows.keys), torch.zeros_like(items.keys)
    grad_temperature = torch.zeros_like(items.temperature)
    once = items.collect(grad) if mode == SUM else None
    for j, now in zip(reversed(range(steps)), solved.backwards(steps), strict=True):
        alive = (j < k).unsqueeze(-1)
        p = now.p * alive
        if once is not None:
            grad_p, total = once, total + p
        elif mode == VECTORS:
            grad_p = items.collect(grad[:, j])
            passive += grad[:, j] * items.slopes(p)
        else:
            grad_p = grad[:, j : j + 1] * _marks(items, at[:, j])
            item = at[:, j : j + 1].clamp_min(0)
            slope = items.slopes(p).gather(-1, item) * grad[:, j : j + 1] * (at[:, j : j + 1] >= 0)
            passive.scatter_add_(-1, item, slope)
        updated, through_sum = reverse_step(items, now, grad_p * alive, alpha)
        updated, through_sum = torch.where(alive, updated, alpha), through_sum * alive
        along = (now.gap / items.temperature.unsqueeze(-1)).clamp_min(-1e100).masked_fill(~items.present, 0)
        grad_temperature -= ((updated - alpha) * along).sum(-1)
        alpha, many = updated, many + through_sum
    if mode == SUM:
        passive = grad * items.slopes(total)
    passive = passive + items.slopes(many)
    distance = (solved.rows.keys - items.threshold).masked_fill(items.u == 0, 0)
    grad_temperature -= (passive * distance).sum(-1) / items.temperature
    return passive.scatter(-1, items.index, alpha[:, : items.active]), grad_temperature


def _marks(items: Split, item: Tensor) -> Tensor:
    """The weights (rows, M) with which the items of the recursion make up one item (rows,) of the row; 0 for -1."""
    marked = torch.zeros_like(items.u).scatter(-1, item.clamp_min(0).unsqueeze(-1), 1.0)
    return items.collect(marked * (item >= 0).unsqueeze(-1))


def _solved(keys: Tensor, k: Tensor, temperature: Tensor, steps: int) -> Iterator[Solved]:
    """The rows that are not short, through the recursion."""
    present = keys != -torch.inf
    enough = ((present.sum(-1) >= k) & (k > 0)).nonzero().squeeze(-1)
    promise = PROMISE if keys.dtype == torch.float64 else PROMISE_NARROW
    rows = Rows(keys.double().masked_fill(~present, 0), present, k, temperature, promise).chosen(enough)
    for solved in solve(rows, steps):
        yield solved._replace(which=enough[solved.which])
