"""The base class of the two discrete distributions: checks of values, entropy and divergence by enumeration."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import torch
from torch import Tensor

from khot import _checks
from khot.distributions import constraints
from khot.distributions._base import SubsetDistribution
from khot.errors import InvalidTypeError, InvalidValueError, NotAvailableError

_MAX_OUTCOMES = 200_000  # that are enumerated, over all batch rows
_SHOWN_ENTRIES = 20  # of a bad value in an error


class DiscreteSubsetDistribution(SubsetDistribution):
    """Subset distribution whose outcomes are index tuples: `_count(n, k)` of them, listed by `_tuples(range(n), k)`."""

    has_enumerate_support = True
    _count: Callable[[int, int], int]
    _tuples: Callable[..., Iterable[tuple[int, ...]]]

    @property
    def support_size(self) -> int:
        """Number of outcomes of one batch row."""
        return self._count(self.n, self.k)

    def log_prob_indices(self, indices: Tensor) -> Tensor:
        """Log-probability of the outcomes with these item indices.

        Parameters
        ----------
        indices : Tensor, shape (..., k)
            Different items in 0..n-1.

        Returns
        -------
        Tensor, shape (...)
            As `log_prob` returns it.
        """
        return self.log_prob(indices)

    def rsample(self, sample_shape: Sequence[int] = ()) -> NoReturn:
        """Raise `NotAvailableError`: a discrete distribution has no reparameterised samples."""
        raise NotAvailableError(
            f"{type(self).__name__} is discrete and has no reparameterised samples: use RelaxedSubset or "
            "RelaxedOrderedSubset, or sample_subset with hard=True for a straight-through gradient"
        )

    def entropy(self) -> Tensor:
        """Exact entropy in nats, by enumerating all outcomes.

        Returns
        -------
        Tensor, shape (...)
            ``-sum of p log p``, differentiable in the logits.

        Raises
        ------
        NotAvailableError
            If there are more than 200,000 outcomes over all batch rows.
        """
        log_p = self._all_log_probs("entropy")
        return -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0)).sum(0).to(self.logits.dtype)

    def _all_indices(self, what: str) -> Tensor:
        """Indices of all outcomes, (support, k); `what` names the caller in an error."""
        rows = self.batch_shape.numel()
        if self.support_size * rows > _MAX_OUTCOMES:
            raise NotAvailableError(
                f"{what} enumerates all outcomes, and {self!r} has {_readable(self.support_size)} of them for each of "
                f"{rows} batch rows, above the limit of {_MAX_OUTCOMES:,} in total: use samples instead; for example, "
                "the mean of -d.log_prob(d.sample((1000,))) estimates the entropy"
            )
        outcomes = list(self._tuples(range(self.n), self.k))
        return torch.tensor(outcomes, dtype=torch.int64, device=self.logits.device).reshape(len(outcomes), self.k)

    def _in_batches(self, outcomes: Tensor, expand: bool) -> Tensor:
        """Outcomes (support, size) with the batch axes in between, as axes of length 1 unless `expand`."""
        outcomes = outcomes.reshape(len(outcomes), *[1] * len(self.batch_shape), outcomes.shape[-1])
        return outcomes.expand(-1, *self.batch_shape, -1) if expand else outcomes

    def _all_log_probs(self, what: str) -> Tensor:
        """Log-probabilities of all outcomes, (support, ...), in float64."""
        wide = type(self)(self.logits.double(), self.k, validate_args=False)
        return wide.log_prob_indices(self._in_batches(self._all_indices(what), expand=True))

    def _divide(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Divide the items into chosen and other ones, in float64, with axes that values and batch share.

        Returns the logits of the chosen items (..., k), those of the others (..., n) with -inf in place of the chosen,
        and whether an absent item is chosen (...). Where it is, all logits are 0.
        """
        batch_shape = torch.broadcast_shapes(chosen.shape[:-1], self.batch_shape)
        logits, chosen = self.logits.double().expand(*batch_shape, self.n), chosen.expand(*batch_shape, self.k)
        members, rest = logits.gather(-1, chosen), logits.scatter(-1, chosen, -torch.inf)
        impossible = (members == -torch.inf).any(-1)
        ignored = impossible.unsqueeze(-1)
        return members.masked_fill(ignored, 0), rest.masked_fill(ignored, 0), impossible

    def _check_indices(self, indices: Tensor) -> None:
        self._check_value(
            indices,
            constraints.DistinctIndices(self.n),
            self.k,
            f"{self.k} different indices below {self.n}",
            "count items from 0, and name each item at most once",
        )

    def _check_value(
        self, value: Tensor, support: constraints.Constraint, size: int, description: str, hint: str
    ) -> None:
        """Raise unless `value` has `size` entries on its last axis, fits the batch shape and lies in the support."""
        if not isinstance(value, Tensor):
            raise InvalidTypeError(
                f"value must be a torch.Tensor of {description}, but got {type(value).__name__}: "
                "wrap it in torch.as_tensor"
            )
        if not self._validate_args:
            return
        fits = value.ndim > 0 and value.shape[-1] == size
        try:
            torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        except RuntimeError:
            fits = False
        if not fits:
            raise InvalidValueError(
                f"value must hold {description}, but got shape {tuple(value.shape)}: "
                f"reshape it so that it broadcasts with {(*self.batch_shape, size)}"
            )
        bad = ~support.check(value)
        if _checks.holds(bad):
            entries = value[bad][0].tolist()
            got = f"{entries[:_SHOWN_ENTRIES]}{' (and so on)' if len(entries) > _SHOWN_ENTRIES else ''}"
            where = f" at index {tuple(bad.nonzero()[0].tolist())}" if bad.ndim else ""
            raise InvalidValueError(f"value must hold {description}, but got {got}{where}: {hint}")


def kl_by_enumeration(p: DiscreteSubsetDistribution, q: DiscreteSubsetDistribution) -> Tensor:
    """Exact Kullback-Leibler divergence, ``sum of p (log p - log q)``; infinite where q excludes an outcome of p."""
    if (p.n, p.k) != (q.n, q.k):
        raise InvalidValueError(
            f"both distributions must have the same n and k, but got {p!r} and {q!r}: compare subsets of one size"
        )
    batch_shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    log_p, log_q = (d.expand(batch_shape)._all_log_probs("kl_divergence") for d in (p, q))
    zero_p, zero_q = log_p == -torch.inf, log_q == -torch.inf
    either = zero_p | zero_q
    terms = log_p.exp() * (log_p.masked_fill(either, 0) - log_q.masked_fill(either, 0))
    terms = terms.masked_fill(zero_q & ~zero_p, torch.inf)
    return terms.sum(0).clamp_min(0).to(torch.promote_types(p.logits.dtype, q.logits.dtype))


def _readable(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"about 10^{int(math.log10(count))}"
