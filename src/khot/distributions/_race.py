"""log p(S|w) as one integral: the probability that a set of runners all finish before the rest.

Item i finishes at an exponential time of rate w_i; S is the sample if its slowest member beats the fastest of the rest,
whose rates add up to W. With z = log(W time) and d_i = log(w_i / W), eq. 2 of the paper (a sum over k! orders) is

    p(S|w) = integral of f,    log f(z) = z - e^z + sum over S of log(1 - exp(-exp(d_i + z))).

log f is concave with its maximum in [0, log(k + 1)], and f is entire and decays fast on both sides, so the trapezoid
rule converges geometrically: some sixty nodes reach the precision of float64.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

_DROP = 45.0  # log f is cut where it has fallen this far below its maximum
_SLOW = -1000.0  # a log-rate below it enters the probability as a factor of its own, to the last digit
_FINEST = 256  # the first step is divided by this at the most
_EARLY = -36.0  # below it, log(1 - exp(-e^v)) is v to the last digit


def log_win_probability(lead: Tensor) -> Tensor:
    """Log-probability that runners with log-rates `lead` (rows, k), relative to the rest, all finish first: (rows,).

    Differentiable in `lead`; the grid is held constant. Its step is halved until the integral with every second node
    agrees to six digits with that over all of them: the error is about squared by a halving, so that of the latter is
    then negligible.
    """
    slow = lead.clamp_min(_SLOW)
    with torch.no_grad():
        start, end, intervals = _window(slow)
    refine = 1
    while True:
        nodes, step = _nodes(start, end, intervals * refine)
        density = _log_density(slow, nodes)
        fine, coarse = density.logsumexp(-1) + step.log(), density[:, ::2].logsumexp(-1) + (2 * step).log()
        refine *= 2
        if refine > _FINEST or not len(lead) or (fine - coarse).abs().amax() < 1e-6:
            return fine + (lead - slow).sum(-1)


def _window(lead: Tensor) -> tuple[Tensor, Tensor, int]:
    """Where f begins and ends (rows,), and in how many steps, an even number, the most demanding row is crossed."""
    k = lead.shape[-1]
    peak = bisect(lambda z: _slope(lead, z) > 0, lead.new_zeros(len(lead)), math.log(k + 1))
    lowest = _log_density(lead, peak.unsqueeze(-1)).squeeze(-1) - _DROP
    # The slope is at least 1 - e^-c at a distance c to the left and at least e^c - 1 to the right: the brackets.
    start = bisect(lambda z: _log_density(lead, z.unsqueeze(-1)).squeeze(-1) < lowest, peak - _DROP - 2, _DROP + 2)
    end = bisect(lambda z: _log_density(lead, z.unsqueeze(-1)).squeeze(-1) > lowest, peak, 4.5)
    width = _curvature(lead, peak).rsqrt()
    intervals = int(((end - start) / (0.6 * width).clamp_max(0.25)).amax()) if len(lead) else 1
    return start, end, 2 * (intervals // 2 + 1)


def _nodes(start: Tensor, end: Tensor, intervals: int) -> tuple[Tensor, Tensor]:
    """Nodes (rows, intervals + 1) and their spacing (rows,)."""
    step = (end - start) / intervals
    return start.unsqueeze(-1) + step.unsqueeze(-1) * torch.arange(intervals + 1, device=start.device), step


def bisect(left_of_root: Callable[[Tensor], Tensor], low: Tensor, length: float | Tensor) -> Tensor:
    """The point of [low, low + length] up to which `left_of_root` holds, to 1e-9 of the length."""
    for _ in range(30):
        length = length / 2
        low = torch.where(left_of_root(low + length), low + length, low)
    return low


def _log_density(lead: Tensor, z: Tensor) -> Tensor:
    """log f at nodes z (rows, count), by rows."""
    return z - z.exp() + _log_finished(lead.unsqueeze(-2) + z.unsqueeze(-1)).sum(-1)


def _log_finished(v: Tensor) -> Tensor:
    """log(1 - exp(-e^v)), the log-probability of having finished; no branch ever meets an infinity."""
    early = v < _EARLY
    inner = torch.where(early, 0, v).clamp_max(6)
    return torch.where(early, v, torch.log(-torch.expm1(-inner.exp())))


def _hazard(lead: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """a = e^v and the slope of log(1 - exp(-a)) in v, a / (e^a - 1)."""
    a = (lead + z.unsqueeze(-1)).clamp(_EARLY, 6).exp()
    return a, a / torch.expm1(a)


def _slope(lead: Tensor, z: Tensor) -> Tensor:
    return 1 - z.exp() + _hazard(lead, z)[1].sum(-1)


def _curvature(lead: Tensor, z: Tensor) -> Tensor:
    """Minus the second derivative of log f."""
    a, hazard = _hazard(lead, z)
    return z.exp() - (hazard * (1 - a - hazard)).sum(-1)
