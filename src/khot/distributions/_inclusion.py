"""Inclusion probabilities: the probability of each item to be among the first k to finish a race.

Item i finishes at a time with an exponential distribution of rate w_i. Let N be the number of items that have finished
by time e^y, N_-i the same without item i, and v_i = log w_i + y. Then

    pi_i = integral over y of e^v_i exp(-e^v_i) P(N_-i < k) = integral over y of -dG/dv_i,    G = E[(k - N)^+].

G comes from the usual dynamic programme over the items, and one reverse sweep through it gives all n derivatives
without a division. Since pi is the gradient of a potential, its Jacobian is symmetric: the backward pass is a
Hessian-vector product. The integral is a trapezoid sum whose step is halved until the probabilities add up to k.

At early nodes, where fewer than k items have finished almost surely, G is k - E[N]: no dynamic programme is needed.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from khot.distributions._race import bisect
from khot.errors import NotAvailableError

_TOLERANCE = 1e-12  # relative error of the sum of the probabilities, which is exactly k
_MAX_HALVINGS = 8
_TAIL = 42.0  # probabilities below e^-42 are neglected
_FINISHED = 6.7  # exp(-e^6.7) is 0 in float64
_MAX_GAP = 50.0  # of two logits this far apart, the lower one finishes first with probability e^-50
_MAX_ENTRIES = 2**23  # of the dynamic programme's history held in memory


def inclusion_probabilities(logits: Tensor, k: int) -> Tensor:
    """Inclusion probabilities, differentiable once in the logits.

    Parameters
    ----------
    logits : Tensor of float64, shape (rows, n)
        -inf for absent items. Every row has more than k present items.
    k : int
        Positive.

    Returns
    -------
    Tensor, shape (rows, n)
    """
    logits = _narrowed(logits)
    return _Inclusion.apply(logits - logits.detach().logsumexp(-1, keepdim=True), k)  # pyright: ignore[reportReturnType]


def _narrowed(logits: Tensor) -> Tensor:
    """Logits in the same order without gaps wider than `_MAX_GAP`, beyond which the lower item never wins."""
    present = logits > -torch.inf
    lowest = logits.detach().masked_fill(~present, torch.inf).amin(-1, keepdim=True)
    values, order = torch.where(present, logits.detach(), lowest).sort(dim=-1, descending=True)
    gaps = (values[:, :-1] - values[:, 1:]).clamp_max(_MAX_GAP)
    narrow = torch.nn.functional.pad(-gaps.cumsum(-1), (1, 0))
    narrow = torch.empty_like(values).scatter(-1, order, narrow).masked_fill(~present, -torch.inf)
    return torch.where(present, narrow + (logits - logits.detach()), narrow)


class _Grid(NamedTuple):
    """Nodes y = lattice + origin: one lattice for all rows, shifted row by row."""

    lattice: Tensor  # (count,), negative at the early nodes
    origin: Tensor  # (rows,)
    step: float

    def halved(self) -> "_Grid":
        """The grid with half the step."""
        between = self.lattice + self.step / 2
        return _Grid(torch.cat([self.lattice, between]), self.origin, self.step / 2)

    def chunks(self, log_rates: Tensor, k: int) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """Chunks of (row, node) pairs that fit in memory: v (pairs, n), the rows, and whether the nodes are early."""
        rows, n = log_rates.shape
        for early in (True, False):
            lattice = self.lattice[(self.lattice < 0) == early]
            row = torch.arange(rows, device=log_rates.device).repeat(len(lattice))
            y = lattice.repeat_interleave(rows) + self.origin[row]
            size = max(1, _MAX_ENTRIES // (n if early else n * k))
            for row_part, y_part in zip(row.split(size), y.split(size), strict=True):
                yield log_rates[row_part] + y_part.unsqueeze(-1), row_part, early


def _first_grid(log_rates: Tensor, k: int) -> _Grid:
    origin, end = _window(log_rates, k)
    longest, shortest = float((end - origin).amax()), float((end - origin).amin())
    step = min(0.25, shortest / 30)
    before, after = math.ceil((_TAIL + float(origin.amax())) / step), math.ceil(longest / step)
    return _Grid(torch.arange(-before, after + 1).to(log_rates) * step, origin, step)


def _integrate(grid: _Grid, log_rates: Tensor, k: int) -> Tensor:
    probs = torch.zeros_like(log_rates)
    for v, row, early in grid.chunks(log_rates, k):
        probs.index_add_(0, row, _integrand(v, k, early).detach() * grid.step)
    return probs


class _Inclusion(torch.autograd.Function):
    """Inclusion probabilities; saves the grid that was fine enough for the backward pass."""

    @staticmethod
    def forward(ctx: Any, log_rates: Tensor, k: int) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        grid = _first_grid(log_rates, k)
        probs = _integrate(grid, log_rates, k)
        for _ in range(_MAX_HALVINGS):
            if (probs.sum(-1) - k).abs().amax() < _TOLERANCE * k:
                break
            grid = grid.halved()
            probs = _integrate(grid, log_rates, k)
        else:
            raise NotAvailableError(
                f"inclusion_probs did not converge: on the finest grid they add up to {probs.sum(-1).tolist()} and not "
                f"to k = {k}: use the mean of samples instead, and please report these logits"
            )
        ctx.save_for_backward(log_rates)
        ctx.k, ctx.grid = k, grid
        return probs.clamp_(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _InclusionBackward.apply(*ctx.saved_tensors, grad, ctx.k, ctx.grid), None  # pyright: ignore[reportReturnType]


class _InclusionBackward(torch.autograd.Function):
    """Jacobian of the inclusion probabilities, the Hessian of the integral of -G, times a vector."""

    @staticmethod
    def forward(ctx: Any, log_rates: Tensor, grad: Tensor, k: int, grid: _Grid) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        result = torch.zeros_like(log_rates)
        for v, row, early in grid.chunks(log_rates, k):
            with torch.enable_grad():
                v.requires_grad_()
                (product,) = torch.autograd.grad((_integrand(v, k, early) * grad[row]).sum(), v)
            result.index_add_(0, row, product * grid.step)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise NotAvailableError("inclusion_probs cannot be differentiated twice: differentiate log_prob instead")


def _integrand(v: Tensor, k: int, early: bool) -> Tensor:
    """-dG/dv (pairs, n), differentiable if v requires a gradient."""
    if early:  # G = k - E[N], and E[N] = sum of 1 - exp(-e^v)
        rate = v.clamp_max(_FINISHED).exp()
        return rate * torch.exp(-rate)
    create_graph = v.requires_grad
    with torch.inference_mode(False), torch.enable_grad():
        v = v if create_graph else v.clone().requires_grad_()
        (grad,) = torch.autograd.grad(_expected_shortfall(v, k).sum(), v, create_graph=create_graph)
    return -grad


def _expected_shortfall(v: Tensor, k: int) -> Tensor:
    """G = E[(k - N)^+] = sum over m < k of (k - m) P(N = m), (pairs,).

    P(N = m) comes from the recursion over items, with q_i = 1 - exp(-e^v_i):
    P(N = m) <- P(N = m) (1 - q_i) + P(N = m - 1) q_i.
    """
    rate = v.clamp_max(_FINISHED).exp()
    running, finished = torch.exp(-rate), -torch.expm1(-rate)
    probs = torch.nn.functional.pad(v.new_ones(len(v), 1), (0, k - 1))
    for stays, goes in zip(running.unsqueeze(-1).unbind(1), finished.unsqueeze(-1).unbind(1), strict=True):
        probs = probs * stays + torch.nn.functional.pad(probs[:, :-1], (1, 0)) * goes
    return (probs * torch.arange(k, 0, -1, device=v.device)).sum(-1)


def _window(log_rates: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Values of y (rows,) below which N < k, and above which N >= k, up to e^-42, by Chernoff's bounds."""
    kth = log_rates.topk(k, dim=-1).values[:, -1]
    end = math.log(_TAIL + math.log(k)) - kth  # by then the k items with the largest rates have finished
    start = torch.full_like(end, -_TAIL - 2)

    def mean(y: Tensor) -> Tensor:
        return -torch.expm1(-(log_rates + y.unsqueeze(-1)).exp()).sum(-1)

    def rare(count: int, mu: Tensor) -> Tensor:
        """Whether N, of mean mu, is as far out as `count` with probability below e^-42: Chernoff's bound."""
        return count - mu + (count * (mu / count).log() if count else 0) < -_TAIL

    def not_done(y: Tensor) -> Tensor:
        mu = mean(y)
        return ~((mu > k - 1) & rare(k - 1, mu))

    def not_begun(y: Tensor) -> Tensor:
        mu = mean(y)
        return (mu < k) & rare(k, mu)

    end = bisect(not_done, start, end - start)
    return bisect(not_begun, start, end - start), end
