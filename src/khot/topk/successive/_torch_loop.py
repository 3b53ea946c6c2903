"""The recursion of the successive softmax and its reverse sweep in torch operations, for a table of rows in float64.

For devices that have no compiled kernels. State of the recursion: `taken`, the sum of the log(1 - p) so far, apart from
the keys. Textbook code adds the two and works in units of the temperature; here every step measures from its own
largest item, (keys - key_m) + (taken - taken_m), which keeps the digits of items that contend far below the first
maximum. That matters: below a temperature of about 0.5 a step multiplies the gap of two contending items by
1 - 1/temperature, and every rounding error with it. So both passes carry a bound of the error.

Rows are tried in turn with their largest items active and nodes for the rest, the same with 32 digits, with all items
active, and all with 32 digits, until the bound keeps the promise.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from khot.topk._rows import ABSENT
from khot.topk.successive import _torch_precise
from khot.topk.successive._compiled.constants import COLD, COLDEST, WIDEST
from khot.topk.successive._torch_split import ACTIVE, DENSE, ROUGH, TOLERANCE, Split, everything, largest_active
from khot.topk.successive._torch_step import Step, step

_UNIT = 2.0**-53


class Rows(NamedTuple):
    """Keys in float64, 0 where an item is absent; k and temperature with one entry a row."""

    keys: Tensor  # (rows, n)
    present: Tensor  # (rows, n) bool
    k: Tensor  # (rows,)
    temperature: Tensor  # (rows,)
    promise: float  # error up to which a row is trusted

    def chosen(self, which: Tensor) -> "Rows":
        """Some of the rows."""
        some = self.keys[which], self.present[which], self.k[which], self.temperature[which]
        return Rows(*some, self.promise)


class Solved(NamedTuple):
    """Rows whose recursion can be trusted."""

    which: Tensor  # (some,) their numbers
    rows: Rows
    items: Split
    precise: bool

    def run(self, steps: int) -> Iterator[Step]:
        """The steps, from the first."""
        return _torch_precise.run(self.items, steps) if self.precise else _run(self.items, steps)

    def backwards(self, steps: int) -> Iterator[Step]:
        """The steps, from the last. Of plain ones only the states are held, and the rest computed again."""
        if self.precise:
            yield from reversed(list(self.run(steps)))
            return
        states = [self.items.start]
        for now in self.run(steps - 1):
            states.append(states[-1] + now.log_left)
        for taken in reversed(states[:steps]):
            yield step(self.items, taken)


def solve(rows: Rows, steps: int) -> Iterator[Solved]:
    """All rows, in groups by what it takes to trust them."""
    which = torch.arange(len(rows.keys), device=rows.keys.device)
    for active in (ACTIVE * steps, None) if 0 < DENSE * steps <= rows.keys.shape[-1] else (None,):
        for precise in (False, True):
            if len(which) == 0:
                return
            here = rows.chosen(which)
            certain = active is None and (precise or not _may_lose_digits(here).any())
            trusted = torch.ones_like(which, dtype=torch.bool)
            if not certain:
                trusted = _trusted(here, _split(here, active), steps, precise)
            if trusted.any():
                some = rows.chosen(which[trusted])
                part = _split(some, active)
                yield Solved(which[trusted], some, part, precise)
            which = which[~trusted]


def _split(rows: Rows, active: int | None) -> Split:
    if active is None:
        return everything(rows.keys, rows.present, rows.temperature)
    return largest_active(rows.keys, rows.present, rows.temperature, active)


def _run(items: Split, steps: int) -> Iterator[Step]:
    taken = items.start
    for _ in range(steps):
        now = step(items, taken)
        taken = taken + now.log_left
        yield now


def _trusted(rows: Rows, items: Split, steps: int, precise: bool) -> Tensor:
    """Rows (rows,) whose nodes stand for their passive items, and whose errors keep the promise, where there is one."""
    taken, zero = items.start, torch.zeros_like(items.keys)
    bound, doubtful = _ErrorBound(zero, zero), _may_lose_digits(rows)
    sound = torch.ones_like(doubtful)
    entries = zero[:, items.active :]
    for j, now in enumerate(_run(items, steps)):
        alive = (j < rows.k).unsqueeze(-1)
        entries = entries + now.p[:, items.active :] * alive
        mass = (items.many * now.p)[:, items.active :].sum(-1, keepdim=True)
        good = (mass >= 0) & (now.p >= 0).all(-1, keepdim=True)
        good &= (entries <= TOLERANCE * items.temperature.unsqueeze(-1)).all(-1, keepdim=True)
        sound &= (good | ~alive).squeeze(-1)
        taken = taken + now.log_left
        bound = bound.after(now, items, taken, mass, 0.0 if precise else _UNIT, alive)
    return sound & ((bound.result[:, : items.active].amax(-1) <= rows.promise) | ~doubtful)


def _may_lose_digits(rows: Rows) -> Tensor:
    """Rows (rows,) in which errors can grow, or begin large, and accuracy is promised all the same."""
    present, t = rows.present, rows.temperature
    widest = rows.keys.masked_fill(~present, ABSENT).amax(-1) - rows.keys.masked_fill(~present, -ABSENT).amin(-1)
    grow = (t < COLD) & (t >= COLDEST) & (widest <= WIDEST)
    begin_large = (t >= COLD) & (widest > 1e3 * t) & (widest < 1e12)
    return grow | begin_large


class _ErrorBound(NamedTuple):
    """First-order bounds (rows, M) of the absolute error of alpha and of the result so far."""

    alpha: Tensor
    result: Tensor

    def after(self, now: Step, items: Split, taken: Tensor, mass: Tensor, unit: float, alive: Tensor) -> "_ErrorBound":
        """The bounds after a step; an error e of alpha becomes (1 - p/t) e + p/t (the mean of e over the others)."""
        t = items.temperature.unsqueeze(-1)
        sharpness = now.p / t
        rounding = unit * (now.below * t).abs()
        here = self.alpha + rounding
        rough = ROUGH * mass * t
        spread = items.many.abs() * now.p * here
        from_others = (spread.sum(-1, keepdim=True) + rough - spread).clamp_min(0) / (1 - now.p).clamp_min(0.5)
        share = (items.many.abs() * now.share * here).sum(-1, keepdim=True)
        left = now.left
        from_others = torch.where(now.head, share + rough / left.clamp_min(1e-300), from_others)
        result = self.result + (sharpness * left * (here + from_others) + 4 * unit * now.p) * alive
        alpha = (1 - sharpness).abs() * self.alpha + sharpness * (rounding + from_others)
        return _ErrorBound(alpha + unit * (taken.abs() + 2 * now.log_left.abs()), result)
