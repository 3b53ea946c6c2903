"""Laws over finitely many outcomes, small enough to list: exact entropy and divergence."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import torch
from torch import Tensor

from khot.distributions._base import SubsetDistribution
from khot.errors import InvalidValueError, NotAvailableError

SUPPORT_LIMIT = 200_000  # outcomes that are listed, over all rows


class ListedDistribution(SubsetDistribution):
    """`_count` and `_list` are the counting function and the iterator of the outcomes, as indices."""

    has_enumerate_support = True
    _count: Callable[[int, int], int]
    _list: Callable[..., Iterable[tuple[int, ...]]]

    @property
    def support_size(self) -> int:
        """Number of outcomes."""
        return self._count(self.n, self.k)

    def log_prob_indices(self, indices: Tensor) -> Tensor:
        """Log-probability of the outcome with these indices (..., k)."""
        return self.log_prob(indices)

    def rsample(self, sample_shape: Sequence[int] = ()) -> NoReturn:
        """There is none: raises `NotAvailableError`."""
        raise NotAvailableError(
            f"{type(self).__name__} is discrete and has no reparameterised samples: use RelaxedSubset or "
            "RelaxedOrderedSubset, or sample_subset with hard=True for a straight-through gradient"
        )

    def entropy(self) -> Tensor:
        """Exact entropy in nats, by listing all outcomes; raises `NotAvailableError` if they are too many."""
        log_p = self._all_log_probs("entropy")
        return -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0)).sum(0).to(self.logits.dtype)

    def _all_indices(self, what: str) -> Tensor:
        """All outcomes, (support, k)."""
        rows = self.batch_shape.numel()
        if self.support_size * rows > SUPPORT_LIMIT:
            raise NotAvailableError(
                f"{what} lists all outcomes, and {self!r} has {_readable(self.support_size)} of them for each of "
                f"{rows} rows, above the limit of {SUPPORT_LIMIT:,} in all: work with samples instead; the mean of "
                "-d.log_prob(d.sample((1000,))), for one, estimates the entropy"
            )
        outcomes = list(self._list(range(self.n), self.k))
        return torch.tensor(outcomes, dtype=torch.int64, device=self.logits.device).reshape(len(outcomes), self.k)

    def _in_batches(self, outcomes: Tensor, expand: bool) -> Tensor:
        """Outcomes (support, size) with the batch axes in between."""
        outcomes = outcomes.reshape(len(outcomes), *[1] * len(self.batch_shape), outcomes.shape[-1])
        return outcomes.expand(-1, *self.batch_shape, -1) if expand else outcomes

    def _all_log_probs(self, what: str) -> Tensor:
        """Log-probabilities of all outcomes, (support, ...), in float64."""
        wide = type(self)(self.logits.double(), self.k, validate_args=False)
        return wide.log_prob_indices(self._in_batches(self._all_indices(what), expand=True))


def kl_by_listing(p: ListedDistribution, q: ListedDistribution) -> Tensor:
    """Exact Kullback-Leibler divergence; raises `NotAvailableError` if the outcomes are too many."""
    if (p.n, p.k) != (q.n, q.k):
        raise InvalidValueError(f"both distributions need the same n and k, but got {p!r} and {q!r}")
    batch_shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    log_p, log_q = (d.expand(batch_shape)._all_log_probs("kl_divergence") for d in (p, q))
    impossible, excluded = log_p == -torch.inf, log_q == -torch.inf
    either = impossible | excluded
    terms = log_p.exp() * (log_p.masked_fill(either, 0) - log_q.masked_fill(either, 0))
    terms = terms.masked_fill(excluded & ~impossible, torch.inf)
    return terms.sum(0).clamp_min(0).to(torch.promote_types(p.logits.dtype, q.logits.dtype))


def _readable(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"about 10^{int(math.log10(count))}"
