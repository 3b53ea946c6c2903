"""The recursion of the successive softmax and its reverse sweep, for a table of rows in float64.

State of the recursion: `taken`, the sum of the log(1 - p) so far, apart from the keys. Textbook code adds the two and
works in units of the temperature; here every step measures from its own largest item, (keys - key_m) + (taken -
taken_m), which keeps the digits of items that contend far below the first maximum. That matters: below a temperature of
about 0.5 a step multiplies the gap of two contending items by 1 - 1/temperature, and every rounding error with it.
So both passes carry a bound of the error, and rows that exceed the promise are done again with 32 digits.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from khot.topk import _successive_precise
from khot.topk._rows import ABSENT
from khot.topk._successive_step import Step, reverse_step, step

_UNIT = 2.0**-53
_STABLE = 0.5  # from this temperature up, errors do not grow
_COLDEST = 0.05  # accuracy is promised down to this temperature,
_WIDEST = 50.0  # and, where errors grow, up to this range of the keys
_GRADIENT_TOLERANCE = 1e-11  # error of the result up to which its gradient is trusted to three digits


def forward(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, ordered: bool, tolerance: float
) -> Tensor:
    """The k vectors (rows, steps, n) if `ordered`, or their sum (rows, n), within `tolerance` where it is promised."""
    total = keys.new_zeros(keys.shape[0], steps, keys.shape[1]) if ordered else torch.zeros_like(keys)

    def collect(j: int, now: Step) -> None:
        alive = (j < k).unsqueeze(-1)
        if ordered:
            total[:, j] = now.p * alive
        else:
            total.add_(now.p * alive)

    redo = _run(keys, present, k, temperature, steps, collect) > tolerance
    if redo.any():
        vectors = [now.p for now in _successive_precise.run(keys[redo], present[redo], temperature[redo], steps)]
        alive = (torch.arange(steps, device=k.device) < k[redo].unsqueeze(-1)).unsqueeze(-1)
        precise = torch.stack(vectors, 1) * alive
        total[redo] = precise if ordered else precise.sum(1)
    return total


def backward(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, grad: Tensor, steps: int, ordered: bool
) -> tuple[Tensor, Tensor]:
    """Gradients in the keys (rows, n) and in the temperature (rows,), given the cotangent of `forward`.

    The recursion runs again and keeps its states (steps x rows x n), so that nothing is held between the two passes.
    """
    states = [torch.zeros_like(keys)]
    error = _run(keys, present, k, temperature, steps, lambda j, now: states.append(states[-1] + now.log_left))
    grads = _sweep(lambda j: step(keys, states[j], present, temperature), k, temperature, grad, steps, ordered)
    redo = error > _GRADIENT_TOLERANCE
    if redo.any():
        precise = list(_successive_precise.run(keys[redo], present[redo], temperature[redo], steps))
        again = _sweep(precise.__getitem__, k[redo], temperature[redo], grad[redo], steps, ordered)
        for result, better in zip(grads, again, strict=True):
            result[redo] = better
    return grads


def _run(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, collect: Callable[[int, Step], None]
) -> Tensor:
    """Hand every step to `collect`; returns a bound of the error of each row (rows,), 0 where errors do not grow."""
    taken = torch.zeros_like(keys)
    bound = _ErrorBound(taken, taken)
    doubtful = _may_lose_digits(keys, present, temperature)
    watch = bool(doubtful.any())
    for j in range(steps):
        now = step(keys, taken, present, temperature)
        collect(j, now)
        taken = taken + now.log_left
        if watch:
            bound = bound.after(now, taken, temperature, (j < k).unsqueeze(-1))
    return bound.result.amax(-1) * doubtful


def _sweep(
    step_at: Callable[[int], Step], k: Tensor, temperature: Tensor, grad: Tensor, steps: int, ordered: bool
) -> tuple[Tensor, Tensor]:
    grad_keys, grad_temperature = torch.zeros_like(grad[:, 0] if ordered else grad), torch.zeros_like(temperature)
    for j in reversed(range(steps)):
        now = step_at(j)
        grad_p = (grad[:, j] if ordered else grad) * (j < k).unsqueeze(-1)
        updated = reverse_step(now, grad_p, grad_keys, temperature)
        grad_temperature -= ((updated - grad_keys) * now.below.clamp_min(-1e100)).sum(-1)
        grad_keys = updated
    return grad_keys, grad_temperature


def _may_lose_digits(keys: Tensor, present: Tensor, temperature: Tensor) -> Tensor:
    """Rows (rows,) in which errors can grow, or begin large, and accuracy is promised all the same."""
    widest = keys.masked_fill(~present, ABSENT).amax(-1) - keys.masked_fill(~present, -ABSENT).amin(-1)
    grow = (temperature < _STABLE) & (temperature >= _COLDEST) & (widest <= _WIDEST)
    begin_large = (temperature >= _STABLE) & (widest > 1e3 * temperature) & (widest < 1e12)
    return grow | begin_large


class _ErrorBound(NamedTuple):
    """First-order bounds (rows, n) of the absolute error of alpha and of the result so far."""

    alpha: Tensor
    result: Tensor

    def after(self, now: Step, taken: Tensor, temperature: Tensor, alive: Tensor) -> "_ErrorBound":
        """The bounds after a step; an error e of alpha becomes (1 - p/t) e + p/t (the mean of e over the others)."""
        sharpness = now.p / temperature.unsqueeze(-1)
        rounding = _UNIT * (now.below * temperature.unsqueeze(-1)).abs()
        here = self.alpha + rounding
        spread = now.p * here
        from_others = (spread.sum(-1, keepdim=True) - spread).clamp_min(0) / (1 - now.p).clamp_min(0.5)
        from_others = torch.where(now.head, (now.share * here).sum(-1, keepdim=True), from_others)
        result = self.result + (sharpness * now.left * (here + from_others) + 4 * _UNIT * now.p) * alive
        alpha = (1 - sharpness).abs() * self.alpha + sharpness * (rounding + from_others)
        return _ErrorBound(alpha + _UNIT * (taken.abs() + 2 * now.log_left.abs()), result)
