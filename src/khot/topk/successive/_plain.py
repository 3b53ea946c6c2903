"""The successive softmax as a plain loop of torch operations, for other devices and for a CPU without Numba.

In logits l = keys / t, a step is

    p = softmax(l),    l <- l + log(1 - p) / t

For an item with p > 1/2, 1 - p is the sum of the other p, since the difference would have no digits left. The backward
pass is the closed form of ALGORITHM.md. Up to `_SEGMENT` steps, the forward pass keeps all p for it. With more steps it
keeps checkpoints, from which the backward pass runs one segment after the other again: O(n sqrt(k)) memory. On a device
nothing waits for the host.

The accuracy is that of float64 arithmetic (float32 on a device that has no float64), without a bound of the error and
without 32 digits. Gradients are accurate for keys within a range of 690 temperatures. On the CPU, float32 and sums of p
are enough from temperature 0.5 up for keys within a range of 60 temperatures; otherwise the sums are taken in
logarithms.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from khot.topk.successive._compiled.constants import SUM

_WARM, _NARROW = 0.5, 60.0  # float32 is enough from this temperature up, for keys in a range of 60 temperatures
_SEGMENT = 16  # up to this number of steps, all p are kept


class _Limits(NamedTuple):
    """Where numbers of a dtype saturate, so that no product of two overflows."""

    t: float  # smallest temperature; the largest is its inverse
    logit: float
    share: float  # p / ((1 - p) t)
    cotangent: float


_LIMITS = {torch.float32: _Limits(1e-20, 1e30, 1e27, 1e11), torch.float64: _Limits(1e-90, 1e290, 1e200, 1e90)}


class Rows(NamedTuple):
    """Rows of keys in the form that the loop needs."""

    logits: Tensor  # (rows, n), the largest is 0, -inf for absent items
    floor: Tensor | None  # (rows, n), lowest logits, -inf for absent items; None if sums of p are enough
    t: Tensor  # (rows or 1, 1)
    alive: Tensor | None  # (rows, steps), 1 if a row takes that step; None if k is the same for all
    steps: int


def prepare(keys: Tensor, k: int | Tensor, temperature: float | Tensor, steps: int) -> Rows:
    """Prepare keys (rows, n), which may hold -inf, in the dtype that they need."""
    narrow = _narrow(keys, temperature)
    dtype = torch.float32 if narrow else widest(keys.device)
    limits = _LIMITS[dtype]
    t = torch.as_tensor(temperature, dtype=dtype, device=keys.device).reshape(-1, 1).clamp(limits.t, 1 / limits.t)
    top = keys.amax(-1, keepdim=True).clamp_min(torch.finfo(keys.dtype).min)
    logits, floor = (keys.to(dtype) - top.to(dtype)) / t, None
    if not narrow:
        floor = torch.full_like(logits, -limits.logit).masked_fill_(keys == -torch.inf, -torch.inf)
        logits = logits.clamp_(floor)
    alive = None
    if isinstance(k, Tensor):
        alive = (torch.arange(steps, device=keys.device) < k.unsqueeze(-1)).to(dtype)
    return Rows(logits, floor, t, alive, steps)


def widest(device: torch.device) -> torch.dtype:
    """The widest floating-point dtype of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def _narrow(keys: Tensor, temperature: float | Tensor) -> bool:
    """Whether float32 and sums of p are enough. Keys are read on the CPU only."""
    if not keys.is_cpu or keys.dtype == torch.float64 or isinstance(temperature, Tensor) or temperature < _WARM:
        return False
    lowest = torch.where(keys > -torch.inf, keys, torch.inf).amin(-1)
    return not bool((keys.amax(-1) - lowest > _NARROW * temperature).any())


def state_shape(n: int, steps: int) -> tuple[int, int]:
    """Shape of what `forward` leaves of a row: p of all steps, or the logits at the start of each segment."""
    return (steps if steps <= _SEGMENT else -(-steps // _segment(steps))), n


def _segment(steps: int) -> int:
    """Number of steps of a segment, whose p are in memory at the same time."""
    return max(_SEGMENT, math.isqrt(max(steps - 1, 0)) + 1)


def _step(logits: Tensor, rows: Rows, p: Tensor) -> Tensor:
    """Fill in the p (rows, n) of a step; returns the logits after it."""
    if rows.floor is not None:
        return _step_in_logarithms(logits, rows.floor, rows.t, p)
    left = logits.softmax(-1)
    p.copy_(left)
    top, index = left.max(-1, keepdim=True)
    others = left.scatter_(-1, index, 0).sum(-1, keepdim=True)
    torch.sub(1, left, out=left).scatter_(-1, index, torch.where(top > 0.5, others, 1 - top))
    return torch.addcdiv(logits, left.log_(), rows.t)


def _step_in_logarithms(logits: Tensor, floor: Tensor, t: Tensor, p: Tensor) -> Tensor:
    """A step for keys that may be so far apart that p underflows."""
    log_p = logits.log_softmax(-1)
    torch.exp(log_p, out=p)
    dominant = p > 0.5
    log_others = log_p.masked_fill(dominant, -torch.inf).logsumexp(-1, keepdim=True)
    log_left = torch.where(dominant, log_others, torch.log1p(-p))
    return torch.addcdiv(log_p, log_left, t).clamp_(floor)


def forward(rows: Rows, at: Tensor | None, mode: int, out: Tensor, keep: bool) -> Tensor:
    """Fill the tables (rows, .) of all rows; returns the state (rows, ., n) for `backward`, or an empty one."""
    count, n = rows.logits.shape
    state = rows.logits.new_empty(count, *(state_shape(n, rows.steps) if keep else (0, n)))
    logits, segment, all_kept = rows.logits, _segment(rows.steps), keep and rows.steps <= _SEGMENT
    at_the_end = all_kept and mode == SUM and rows.alive is None
    for j in range(rows.steps):
        if keep and not all_kept and j % segment == 0:
            state[:, j // segment] = logits
        p = state[:, j] if all_kept else torch.empty_like(logits)
        logits = _step(logits, rows, p)
        if at_the_end:
            continue
        if rows.alive is not None:
            p = p * rows.alive[:, j, None]
        if mode == SUM:
            out += p
        elif at is None:
            out[:, j] = p
        else:
            out[:, j] = p.gather(1, at[:, j, None].clamp_min(0)).squeeze(1).masked_fill(at[:, j] < 0, 0)
    if at_the_end:
        torch.sum(state, 1, out=out)
    return state


def backward(
    rows: Rows, at: Tensor | None, mode: int, state: Tensor, grad: Tensor, want_t: bool
) -> tuple[Tensor, Tensor]:
    """Cotangents of the keys (rows, n) and of t (rows,), if wanted, from that of the tables."""
    y, grad_t = torch.zeros_like(rows.logits), rows.logits.new_zeros(len(rows.logits))
    scale, segment = grad.abs().amax().clamp_min(torch.finfo(grad.dtype).tiny), _segment(rows.steps)
    grad = grad / scale
    for start in reversed(range(0, rows.steps, segment)):
        p = _steps_of(rows, state, start, min(start + segment, rows.steps))
        log_p = p.log().clamp_min_(-_LIMITS[p.dtype].logit) if want_t else p
        dominant = _Dominant.of(p, rows.t)
        for j in reversed(range(p.shape[1])):
            before = y.clone() if want_t else y
            _reverse_step(p[:, j], _cotangent(rows, at, mode, grad, start + j), rows.t, dominant, j, y)
            if want_t:
                grad_t -= ((y - before) * log_p[:, j]).sum(-1)
    return y * scale, grad_t * scale


def _steps_of(rows: Rows, state: Tensor, start: int, stop: int) -> Tensor:
    """p (rows, stop - start, n) of a segment."""
    if rows.steps <= _SEGMENT:
        return state.clone()
    p, logits = state.new_empty(len(state), stop - start, state.shape[-1]), state[:, start // _segment(rows.steps)]
    for j in range(stop - start):
        logits = _step(logits, rows, p[:, j])
    return p


def _cotangent(rows: Rows, at: Tensor | None, mode: int, grad: Tensor, j: int) -> Tensor:
    """Cotangent (rows, n) of p in step j."""
    if mode == SUM:
        g = grad
    elif at is None:
        g = grad[:, j]
    else:
        entry = grad[:, j].masked_fill(at[:, j] < 0, 0)
        g = torch.zeros_like(rows.logits).scatter_(1, at[:, j, None].clamp_min(0), entry.unsqueeze(1))
    return g if rows.alive is None else g * rows.alive[:, j, None]


class _Dominant(NamedTuple):
    """The largest item of each step of a segment, and its coefficients, which are 0 if p <= 1/2; all (rows, steps, 1).

    `of` sets the p of a dominant item to 0 in place, so that the formula for the other items does not change it.
    """

    place: Tensor
    p: Tensor
    p_over_t: Tensor
    left_over_t: Tensor  # p (1 - p) / t
    share: Tensor  # p / ((1 - p) t)

    @staticmethod
    def of(p: Tensor, t: Tensor) -> "_Dominant":
        top, place = p.max(-1, keepdim=True)
        dominant = top > 0.5
        p.scatter_(-1, place, top.masked_fill(dominant, 0))
        left = p.sum(-1, keepdim=True).clamp_min(torch.finfo(p.dtype).tiny)
        top = top.masked_fill(~dominant, 0)
        over_t = top / t.unsqueeze(-1)
        return _Dominant(place, top, over_t, over_t * left, (over_t / left).clamp_max(_LIMITS[p.dtype].share))


def _reverse_step(p: Tensor, g: Tensor, t: Tensor, dominant: _Dominant, j: int, y: Tensor) -> None:
    """Turn y, the cotangent of alpha = t l after a step, into that of alpha before it."""
    place, p_m, over_t, left_over_t, share = (part[:, j] for part in dominant)
    through_p = (p * torch.addcdiv(g, y, 1 - p, value=-1)).div_(t)
    w = through_p.sum(-1, keepdim=True)
    g_m, y_m = g.gather(-1, place), y.gather(-1, place)
    mean = torch.addcmul(torch.addcmul(w, over_t, g_m), share, y_m, value=-1)
    at_dominant = (left_over_t * g_m).addcmul_(over_t, y_m, value=-1).addcmul_(p_m, w, value=-1)
    y.add_(through_p).addcmul_(p, mean, value=-1).scatter_add_(-1, place, at_dominant)
    y.clamp_(-_LIMITS[y.dtype].cotangent, _LIMITS[y.dtype].cotangent)
