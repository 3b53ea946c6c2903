"""Active and passive items of a table of rows, in torch operations: what `_compiled.near_and_far` does for one row.

The recursion runs on M items: the active ones, then D nodes which stand for all passive ones (`_compiled.nodes`).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from khot.topk._rows import ABSENT
from khot.topk.successive._compiled import nodes

ACTIVE = 3  # active items for each step
DENSE = 12  # rows with fewer than this many items for each step have only active ones
LENGTH = 8  # nodes
TOLERANCE = 0.15  # largest entry at a node, over t, up to which the nodes stand for the passive items to 1e-15
ROUGH = 1e-14  # relative error of how many items a node stands for


@dataclass(frozen=True)
class Split:
    """Rows with their items told apart."""

    keys: Tensor  # (rows, M), those of nodes are the threshold
    start: Tensor  # (rows, M), what is added to the keys at the start: t log u for nodes, else 0
    present: Tensor  # (rows, M) bool
    many: Tensor  # (rows, M), how many items each stands for
    index: Tensor  # (rows, active)
    threshold: Tensor  # (rows, 1), the smallest active key
    u: Tensor  # (rows, n), exp((key - threshold) / t), 0 at active items
    temperature: Tensor  # (rows,)

    @property
    def active(self) -> int:
        """How many items of the recursion are not nodes."""
        return self.index.shape[-1]

    def pivot(self, taken: Tensor) -> Tensor:
        """The items (rows, 1) with the largest keys + taken, measured from the largest key, which keeps the digits."""
        keys = self.keys.masked_fill(~self.present, -torch.inf)
        return ((keys - keys.amax(-1, keepdim=True)) + taken).argmax(-1, keepdim=True)

    def spread(self, values: Tensor) -> Tensor:
        """From values of the M items to those of all n."""
        passive = self.u * _polynomial(_coefficients(values[:, self.active :]), self.u)
        return passive.scatter(-1, self.index, values[:, : self.active])

    def collect(self, cotangent: Tensor) -> Tensor:
        """The adjoint of `spread`."""
        active = cotangent.gather(-1, self.index)
        if self.active == self.keys.shape[-1]:
            return active
        return torch.cat([active, _at_nodes(_moments(self.u, cotangent * self.u))], -1)

    def slopes(self, values: Tensor) -> Tensor:
        """Derivative (rows, n) of `spread` in the passive keys, each in its own."""
        coefficients = _coefficients(values[:, self.active :])
        orders = torch.arange(1, coefficients.shape[-1] + 1, device=coefficients.device)
        return self.u * _polynomial(coefficients * orders, self.u) / self.temperature.unsqueeze(-1)


def everything(keys: Tensor, present: Tensor, temperature: Tensor) -> Split:
    """All items active."""
    index = torch.arange(keys.shape[-1], device=keys.device).expand_as(keys)
    zero = torch.zeros_like(keys)
    return Split(keys, zero, present, torch.ones_like(keys), index, zero[:, :1], zero, temperature)


def largest_active(keys: Tensor, present: Tensor, temperature: Tensor, count: int) -> Split:
    """The `count` largest items active."""
    values, index = keys.masked_fill(~present, ABSENT).topk(count, sorted=False)
    here = present.gather(-1, index)
    threshold = values.masked_fill(~here, -ABSENT).amin(-1, keepdim=True)
    sharpness = temperature.reciprocal().clamp_max(1e300).unsqueeze(-1)
    u = ((keys - threshold) * sharpness).clamp(-1e300, 0).exp().masked_fill(~present, 0).scatter(-1, index, 0)
    at = torch.from_numpy(nodes.nodes(LENGTH)).to(keys)
    below = temperature.unsqueeze(-1) * at.log()
    many = torch.cat([torch.ones_like(values), _at_nodes(_moments(u, u))], -1)
    values = values.masked_fill(~here, 0)
    return Split(
        torch.cat([values, threshold.expand_as(below)], -1),
        torch.cat([torch.zeros_like(values), below], -1),
        torch.cat([here, torch.ones_like(below, dtype=torch.bool)], -1),
        many,
        index,
        threshold,
        u,
        temperature,
    )


def _moments(u: Tensor, factor: Tensor) -> Tensor:
    """Sums (rows, D) of factor, factor u, factor u^2, ..."""
    sums = []
    for _ in range(LENGTH):
        sums.append(factor.sum(-1))
        factor = factor * u
    return torch.stack(sums, -1)


def _polynomial(coefficients: Tensor, u: Tensor) -> Tensor:
    """The polynomial with these coefficients (rows, D) at u (rows, n)."""
    value = torch.zeros_like(u)
    for d in reversed(range(coefficients.shape[-1])):
        value = value * u + coefficients[:, d : d + 1]
    return value


def _coefficients(values: Tensor) -> Tensor:
    """Of the polynomial in u that has these values (rows, D), times u, at the nodes."""
    if values.shape[-1] == 0:
        return values
    at, to_chebyshev, in_powers = _tables(values)
    return (values / at) @ to_chebyshev.T @ in_powers


def _at_nodes(moments: Tensor) -> Tensor:
    """The adjoint of `_coefficients`."""
    at, to_chebyshev, in_powers = _tables(moments)
    return moments @ in_powers.T @ to_chebyshev / at


def _tables(like: Tensor) -> tuple[Tensor, ...]:
    tables = nodes.nodes(LENGTH), nodes.to_chebyshev(LENGTH), nodes.chebyshev_in_powers(LENGTH)
    return tuple(torch.from_numpy(table).to(like) for table in tables)
