"""log p(S|w) as one integral: the probability that the items of S all finish a race before the rest.

Item i finishes at a time with an exponential distribution of rate w_i. S is the sample if its slowest member finishes
before the fastest of the rest, whose rates add up to W. With z = log(W * time) and d_i = log(w_i / W), eq. 2 of the
paper, a sum over k! orders, becomes

    p(S|w) = integral of f(z) dz,    log f(z) = z - e^z + sum over S of log(1 - exp(-exp(d_i + z))).

log f is concave with its maximum in [0, log(k + 1)]. f is entire and decays fast on both sides, so the trapezoid rule
converges geometrically: about sixty nodes reach the precision of float64.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

_CUTOFF = 45.0  # the integral ends where log f has fallen this far below its maximum
_SLOWEST = -1000.0  # a log-rate below it is, to the last digit, a factor of its own in the probability
_MAX_REFINEMENT = 256  # the first step is divided by at most this
_LINEAR_BELOW = -36.0  # where log(1 - exp(-e^v)) is v to the last digit


def log_win_probability(lead: Tensor) -> Tensor:
    """Log-probability that items with log-rates `lead`, relative to the total rate of the rest, finish before the rest.

    The step of the grid is halved until the sum over every second node agrees with the sum over all nodes to six
    digits. A halving about squares the error, so the error of the finer sum is then negligible.

    Parameters
    ----------
    lead : Tensor of float64, shape (rows, k)
        d_i in the formula above. The result is differentiable in it; the grid is held constant.

    Returns
    -------
    Tensor, shape (rows,)
    """
    slow = lead.clamp_min(_SLOWEST)
    with torch.no_grad():
        start, end, intervals = _window(slow)
    refinement = 1
    while True:
        nodes, step = _nodes(start, end, intervals * refinement)
        density = _log_density(slow, nodes)
        fine, coarse = density.logsumexp(-1) + step.log(), density[:, ::2].logsumexp(-1) + (2 * step).log()
        refinement *= 2
        if refinement > _MAX_REFINEMENT or not len(lead) or (fine - coarse).abs().amax() < 1e-6:
            return fine + (lead - slow).sum(-1)


def _window(lead: Tensor) -> tuple[Tensor, Tensor, int]:
    """Ends of the integral (rows,), and an even number of steps between them that is enough for every row."""
    k = lead.shape[-1]
    peak = bisect(lambda z: _slope(lead, z) > 0, lead.new_zeros(len(lead)), math.log(k + 1))
    lowest = _log_density(lead, peak.unsqueeze(-1)).squeeze(-1) - _CUTOFF
    # At a distance c from the peak the slope is at least 1 - e^-c on the left and at least e^c - 1 on the right, which
    # bounds the distance at which log f has fallen by the cutoff.
    start = bisect(lambda z: _log_density(lead, z.unsqueeze(-1)).squeeze(-1) < lowest, peak - _CUTOFF - 2, _CUTOFF + 2)
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
    """log f at nodes z (rows, count)."""
    return z - z.exp() + _log_finished(lead.unsqueeze(-2) + z.unsqueeze(-1)).sum(-1)


def _log_finished(v: Tensor) -> Tensor:
    """log(1 - exp(-e^v)), the log-probability to have finished. Neither branch meets an infinity."""
    linear = v < _LINEAR_BELOW
    inner = torch.where(linear, 0, v).clamp_max(6)
    return torch.where(linear, v, torch.log(-torch.expm1(-inner.exp())))


def _slope(lead: Tensor, z: Tensor) -> Tensor:
    """(log f)' = 1 - e^z + sum of h_i, with h_i as in `_rates`."""
    return 1 - z.exp() + _rates(lead, z)[1].sum(-1)


def _curvature(lead: Tensor, z: Tensor) -> Tensor:
    """-(log f)'' = e^z - sum of h_i (1 - a_i - h_i), with a_i and h_i as in `_rates`."""
    a, h = _rates(lead, z)
    return z.exp() - (h * (1 - a - h)).sum(-1)


def _rates(lead: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """a = e^v and h = a / (e^a - 1), the derivative of log(1 - exp(-e^v)) in v, for v = d + z."""
    a = (lead + z.unsqueeze(-1)).clamp(_LINEAR_BELOW, 6).exp()
    return a, a / torch.expm1(a)
