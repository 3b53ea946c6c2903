"""Inclusion probabilities: the chance of each item to be among the first k to finish.

Item i finishes at an exponential time of rate w_i. With N the number that finished by time e^y, and v_i = log w_i + y,

    pi_i = integral over y of e^v_i exp(-e^v_i) P(N without i < k) = integral over y of -dG/dv_i,  G = E[(k - N)^+].

G comes from the usual dynamic programme over the items, and one reverse sweep through it yields all n factors without a
division. As pi is the gradient of a potential, its Jacobian is symmetric: the backward is a Hessian-vector product.
The integral is a trapezoid sum whose step is halved until the probabilities add up to k.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from khot.distributions._race import bisect
from khot.errors import NotAvailableError

_TOLERANCE = 1e-12  # relative, of the sum of the probabilities, which is exactly k
_HALVINGS = 8
_TAIL = 42.0  # probabilities below e^-42 are left out
_FINISHED = 6.7  # exp(-e^6.7) is 0
_APART = 50.0  # two logits this far apart: the lighter item finishes first with a chance of e^-50
_ENTRIES = 2**23  # of the dynamic programme's history, held at a time


def inclusion_probabilities(logits: Tensor, k: int) -> Tensor:
    """Inclusion probabilities (rows, n), differentiable.

    The logits are float64, -inf for absent items, and every row has more than k > 0 present ones.
    """
    logits = _narrowed(logits)
    return _Inclusion.apply(logits - logits.detach().logsumexp(-1, keepdim=True), k)  # pyright: ignore[reportReturnType]


def _narrowed(logits: Tensor) -> Tensor:
    """Logits with the same ranks and no gap wider than `_APART`, beyond which the lighter item never wins."""
    present = logits > -torch.inf
    lowest = logits.detach().masked_fill(~present, torch.inf).amin(-1, keepdim=True)
    values, order = torch.where(present, logits.detach(), lowest).sort(dim=-1, descending=True)
    gaps = (values[:, :-1] - values[:, 1:]).clamp_max(_APART)
    narrow = torch.nn.functional.pad(-gaps.cumsum(-1), (1, 0))
    narrow = torch.empty_like(values).scatter(-1, order, narrow).masked_fill(~present, -torch.inf)
    return torch.where(present, narrow + (logits - logits.detach()), narrow)


class _Grid(NamedTuple):
    """Nodes of all rows: a lattice of one step, shifted row by row."""

    lattice: Tensor  # (count,), 0 where the dynamic programme sets in; before that, N < k for certain
    origin: Tensor  # (rows,)
    step: float

    def halved(self) -> "_Grid":
        """The same grid with twice as many nodes."""
        between = self.lattice + self.step / 2
        return _Grid(torch.cat([self.lattice, between]), self.origin, self.step / 2)

    def chunks(self, log_rates: Tensor, k: int) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """Pieces (pairs, n) of v that fit in memory, the rows that they belong to, and whether N can reach k there."""
        rows, n = log_rates.shape
        for certain, lattice in ((True, self.lattice[self.lattice < 0]), (False, self.lattice[self.lattice >= 0])):
            row = torch.arange(rows, device=log_rates.device).repeat(len(lattice))
            y = lattice.repeat_interleave(rows) + self.origin[row]
            for part in torch.arange(len(row), device=row.device).split(
                max(1, _ENTRIES // (n * (1 if certain else k)))
            ):
                yield log_rates[row[part]] + y[part].unsqueeze(-1), row[part], certain


def _first_grid(log_rates: Tensor, k: int) -> _Grid:
    origin, end = _window(log_rates, k)
    longest, shortest = float((end - origin).amax()), float((end - origin).amin())
    step = min(0.25, shortest / 30)
    before, after = math.ceil((_TAIL + float(origin.amax())) / step), math.ceil(longest / step)
    return _Grid(torch.arange(-before, after + 1).to(log_rates) * step, origin, step)


def _integrate(grid: _Grid, log_rates: Tensor, k: int) -> Tensor:
    probs = torch.zeros_like(log_rates)
    for v, row, certain in grid.chunks(log_rates, k):
        probs.index_add_(0, row, _marginal(v, k, certain).detach() * grid.step)
    return probs


class _Inclusion(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_rates: Tensor, k: int) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        grid = _first_grid(log_rates, k)
        probs = _integrate(grid, log_rates, k)
        for _ in range(_HALVINGS):
            if (probs.sum(-1) - k).abs().amax() < _TOLERANCE * k:
                break
            grid = grid.halved()
            probs = _integrate(grid, log_rates, k)
        else:
            raise NotAvailableError(
                f"inclusion_probs add up to {probs.sum(-1).tolist()} and not to k = {k}, however fine the grid: "
                "estimate them by the mean of samples, and please report these logits"
            )
        ctx.save_for_backward(log_rates)
        ctx.k, ctx.grid = k, grid
        return probs.clamp_(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _InclusionBackward.apply(*ctx.saved_tensors, grad, ctx.k, ctx.grid), None  # pyright: ignore[reportReturnType]


class _InclusionBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_rates: Tensor, grad: Tensor, k: int, grid: _Grid) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        result = torch.zeros_like(log_rates)
        for v, row, certain in grid.chunks(log_rates, k):
            with torch.enable_grad():
                v.requires_grad_()
                (product,) = torch.autograd.grad((_marginal(v, k, certain) * grad[row]).sum(), v)
            result.index_add_(0, row, product * grid.step)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise NotAvailableError("inclusion_probs cannot be differentiated twice: differentiate log_prob instead")


def _marginal(v: Tensor, k: int, certain: bool) -> Tensor:
    """-dG/dv (pairs, n), differentiable if v requires a gradient."""
    if certain:  # G = k - E[N]
        rate = v.clamp_max(_FINISHED).exp()
        return rate * torch.exp(-rate)
    create_graph = v.requires_grad
    with torch.inference_mode(False), torch.enable_grad():
        v = v if create_graph else v.clone().requires_grad_()
        (grad,) = torch.autograd.grad(_expected_shortfall(v, k).sum(), v, create_graph=create_graph)
    return -grad


def _expected_shortfall(v: Tensor, k: int) -> Tensor:
    """G = E[(k - N)^+] (pairs,), by the recursion over items for P(N = m), m < k."""
    rate = v.clamp_max(_FINISHED).exp()
    waiting, finished = torch.exp(-rate), -torch.expm1(-rate)
    law = torch.nn.functional.pad(v.new_ones(len(v), 1), (0, k - 1))
    for stay, go in zip(waiting.unsqueeze(-1).unbind(1), finished.unsqueeze(-1).unbind(1), strict=True):
        law = law * stay + torch.nn.functional.pad(law[:, :-1], (1, 0)) * go
    return (law * torch.arange(k, 0, -1, device=v.device)).sum(-1)


def _window(log_rates: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Per row: where N may first reach k, and where it has done so for certain, by Chernoff's bounds."""
    kth = log_rates.topk(k, dim=-1).values[:, -1]
    end = math.log(_TAIL + math.log(k)) - kth  # the k largest have all finished
    start = torch.full_like(end, -_TAIL - 2)

    def mean(y: Tensor) -> Tensor:
        return -torch.expm1(-(log_rates + y.unsqueeze(-1)).exp()).sum(-1)

    def rare(count: int, mu: Tensor) -> Tensor:  # the chance that N lies as far from its mean mu as count does
        return count - mu + (count * (mu / count).log() if count else 0) < -_TAIL

    def not_done(y: Tensor) -> Tensor:
        mu = mean(y)
        return ~((mu > k - 1) & rare(k - 1, mu))

    def not_begun(y: Tensor) -> Tensor:
        mu = mean(y)
        return (mu < k) & rare(k, mu)

    end = bisect(not_done, start, end - start)
    return bisect(not_begun, start, end - start), end
