"""The steps that all relaxations share around their formulas: checks, float64, broadcasting, and absent items.

Relaxations compute in float64 for every dtype of the keys, and round once at the end. At low temperature float32 would
lose all digits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from khot import _checks
from khot.topk._arrays import per_row, widen
from khot.topk.hard import one_hots

ABSENT = torch.finfo(torch.float64).min  # stands for log 0 where an infinity would turn into NaN
FLOOR = -1e300  # the lowest value of a present item; exp(ABSENT - FLOOR) is still 0


class Rows(NamedTuple):
    """A checked problem: keys in float64, k and temperature with one entry for each batch row."""

    keys: Tensor  # (..., n), float64; absent items hold 0
    present: Tensor  # (..., n) bool
    k: Tensor  # (...)
    temperature: Tensor  # (...), float64
    short: Tensor  # (...) bool: fewer than k items are present, so all of them are chosen
    steps: int  # the largest k
    original: Tensor  # the keys of the caller

    def largest(self) -> Tensor:
        """The largest present key of each row, (..., 1), without a gradient."""
        return self.keys.detach().masked_fill(~self.present, ABSENT).amax(-1, keepdim=True)

    def scaled(self, origin: Tensor) -> Tensor:
        """Keys measured from an origin (..., 1), in units of the temperature, (..., n)."""
        return scaled(self.keys, self.present, self.temperature, origin)


def scaled(keys: Tensor, present: Tensor, temperature: Tensor, origin: Tensor) -> Tensor:
    """``(keys - origin) / temperature`` without infinities, (..., n); 0 where an item is absent."""
    distance = torch.where(present, keys - origin, 0).clamp(-1e150, 1e150)
    sharpness = temperature.reciprocal().clamp_max(-FLOOR)
    return (distance * sharpness.unsqueeze(-1)).clamp(FLOOR, -FLOOR)


def columns(keys: Tensor, k: int | Tensor, temperature: float | Tensor) -> tuple[Tensor, Tensor]:
    """Checked k and temperature (float64) for each batch row; NaN where bad values cannot be read."""
    hidden = _checks.hidden(keys, k, temperature)
    temperature = widen(temperature) if isinstance(temperature, Tensor) else temperature
    k, temperature = per_row(k, keys), per_row(temperature, keys)
    if hidden:
        sound = _checks.usable(keys.detach()) & (temperature > 0) & (temperature < torch.inf)
        sound = sound & (k >= 0) & (k <= keys.shape[-1])
        temperature = torch.where(sound, temperature, torch.nan)
    return k, temperature


def prepare(keys: Tensor, k: int | Tensor, temperature: float | Tensor) -> Rows:
    """Check the arguments of a relaxation and convert them for its formula."""
    return convert(*_checks.problem(keys, k, temperature))


def convert(keys: Tensor, k: int | Tensor, temperature: float | Tensor, steps: int) -> Rows:
    """Convert checked arguments for a formula; values of the keys are checked here."""
    keys = _checks.logits(keys, "keys").contiguous()
    k, temperature = columns(keys, k, temperature)
    present = keys != -torch.inf
    widened = widen(keys.masked_fill(~present, 0))
    short = (present.sum(-1) < k) & (k <= keys.shape[-1])
    return Rows(widened, present, k, temperature, short, steps, keys)


def mapped_first(size: int, in_dims: Sequence[int | None], args: Sequence[Any]) -> list[Any]:
    """The arguments of an operator under vmap, with the mapped axis of `size` as the first one of every tensor."""
    args = list(args)
    for i, (arg, dim) in enumerate(zip(args, in_dims, strict=True)):
        if isinstance(arg, Tensor):
            args[i] = arg.expand(size, *arg.shape) if dim is None else arg.movedim(dim, 0)
    return args


def finish_vectors(logits: Tensor, rows: Rows, ordered: bool) -> Tensor:
    """Relaxed one-hot vectors, or their sum, from their logits (..., steps, n).

    A vector is zero beyond the k of its row, and hard where the row is short.
    """
    alive = torch.arange(rows.steps, device=logits.device) < rows.k.unsqueeze(-1)
    vectors = logits.masked_fill(~rows.present.unsqueeze(-2), ABSENT).softmax(-1) * alive.unsqueeze(-1)
    if not ordered:
        return finish_sum(vectors.sum(-2), rows)
    hard = one_hots(rows.original, rows.k, rows.steps).double()
    return torch.where(rows.short[..., None, None], hard, vectors).to(rows.original.dtype)


def finish_sum(vector: Tensor, rows: Rows) -> Tensor:
    """Finish relaxed k-hot vectors (..., n): exactly 1 at the present items where a row is short."""
    return torch.where(rows.short.unsqueeze(-1), rows.present.double(), vector).to(rows.original.dtype)
