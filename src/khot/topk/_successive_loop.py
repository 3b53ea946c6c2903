"""The recursion of the successive softmax and its reverse sweep, for a table of rows in float64.

State of the recursion: `taken`, the sum of the log(1 - p) so far, apart from the keys. Textbook code adds the two and
works in units of the temperature; here every step measures from its own largest item, (keys - key_m) + (taken -
taken_m), which keeps the digits of items that contend far below the first maximum. That matters: below a temperature of
about 0.5 a step multiplies the gap of two contending items by 1 - 1/temperature, and every rounding error with it.
So the forward pass carries a bound of its own error, and rows that exceed the promise are done again with 32 digits.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from khot.topk import _successive_exact
from khot.topk._rows import ABSENT, FLOOR

_UNIT = 2.0**-53
_LARGEST = 1e200  # cotangents saturate here: times n it is still far from overflow
_STABLE = 0.5  # from this temperature up, errors do not grow
_COLDEST = 0.05  # accuracy is promised down to this temperature,
_WIDEST = 50.0  # and, where errors grow, up to this range of the keys


class Step(NamedTuple):
    """One softmax of the recursion. A *head* is the one item of a row with p > 1/2, where there is one."""

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


def forward(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, ordered: bool, tolerance: float
) -> Tensor:
    """The k vectors (rows, steps, n) if `ordered`, or their sum (rows, n), within `tolerance` where it is promised."""
    taken = torch.zeros_like(keys)
    total = keys.new_zeros(keys.shape[0], steps, keys.shape[1]) if ordered else torch.zeros_like(keys)
    doubtful = _may_lose_digits(keys, present, temperature)
    bound = _ErrorBound(taken, taken)
    for j in range(steps):
        step = _step(keys, taken, present, temperature)
        alive = (j < k).unsqueeze(-1)
        if ordered:
            total[:, j] = step.p * alive
        else:
            total += step.p * alive
        taken = taken + step.log_left
        if doubtful.any():
            bound = bound.after(step, taken, temperature, alive)
    redo = doubtful & (bound.result.amax(-1) > tolerance)
    if redo.any():
        total[redo] = _successive_exact.forward(keys[redo], present[redo], k[redo], temperature[redo], steps, ordered)
    return total


def backward(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, grad: Tensor, steps: int, ordered: bool
) -> tuple[Tensor, Tensor]:
    """Gradients in the keys (rows, n) and in the temperature (rows,), given the cotangent of `forward`.

    The recursion runs again and keeps its states (steps x rows x n), so that nothing is held between the two passes.
    """
    history = [torch.zeros_like(keys)]
    for _ in range(steps - 1):
        history.append(history[-1] + _step(keys, history[-1], present, temperature).log_left)
    grad_keys, grad_temperature = torch.zeros_like(keys), torch.zeros_like(temperature)
    for j in reversed(range(steps)):
        step = _step(keys, history.pop(), present, temperature)
        grad_p = (grad[:, j] if ordered else grad) * (j < k).unsqueeze(-1)
        updated = _reverse_step(step, grad_p, grad_keys, temperature)
        grad_temperature -= ((updated - grad_keys) * step.below.clamp_min(-1e100)).sum(-1)
        grad_keys = updated
    return grad_keys, grad_temperature


def _step(keys: Tensor, taken: Tensor, present: Tensor, temperature: Tensor) -> Step:
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


def _reverse_step(step: Step, grad_p: Tensor, grad_alpha: Tensor, temperature: Tensor) -> Tensor:
    """Cotangent of alpha before the step, from those of p and of alpha after it. Nothing divides by 1 - p of a head."""
    p, head = step.p, step.head
    p_head, g_head, a_head = ((x * head).sum(-1, keepdim=True) for x in (p, grad_p, grad_alpha))
    p_bar = torch.where(head, 0, grad_p - grad_alpha / (1 - p))
    mean = (p * p_bar).sum(-1, keepdim=True)
    at_rest = p * (p_bar - p_head * g_head - mean) + p_head * step.share * a_head
    at_head = p_head * (step.left * g_head - a_head - mean)
    change = torch.where(head, at_head, at_rest) / temperature.unsqueeze(-1)
    return (grad_alpha + change).clamp(-_LARGEST, _LARGEST)


def _may_lose_digits(keys: Tensor, present: Tensor, temperature: Tensor) -> Tensor:
    """Rows (rows,) in which errors can grow and accuracy is promised all the same."""
    widest = keys.masked_fill(~present, ABSENT).amax(-1) - keys.masked_fill(~present, -ABSENT).amin(-1)
    return (temperature < _STABLE) & (temperature >= _COLDEST) & (widest <= _WIDEST)


class _ErrorBound(NamedTuple):
    """First-order bounds (rows, n) of the absolute error of alpha and of the result so far."""

    alpha: Tensor
    result: Tensor

    def after(self, step: Step, taken: Tensor, temperature: Tensor, alive: Tensor) -> "_ErrorBound":
        """The bounds after a step: d alpha_i = d alpha_i (1 - p_i/t) + p_i/t (mean of d alpha over the others)."""
        sharpness = step.p / temperature.unsqueeze(-1)
        rounding = _UNIT * (step.below * temperature.unsqueeze(-1)).abs()
        here = self.alpha + rounding
        spread = step.p * here
        from_others = (spread.sum(-1, keepdim=True) - spread).clamp_min(0) / (1 - step.p).clamp_min(0.5)
        from_others = torch.where(step.head, (step.share * here).sum(-1, keepdim=True), from_others)
        result = self.result + (sharpness * step.left * (here + from_others) + 4 * _UNIT * step.p) * alive
        alpha = (1 - sharpness).abs() * self.alpha + sharpness * (rounding + from_others)
        return _ErrorBound(alpha + _UNIT * (taken.abs() + 2 * step.log_left.abs()), result)
