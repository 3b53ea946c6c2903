"""A weighted sample without replacement of a stream, in memory for k rows."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from khot.errors import InvalidTypeError, InvalidValueError
from khot.reservoir import _checks, _seeds, _storage
from khot.reservoir._best import Rows, in_order, joined, smallest
from khot.reservoir._ranges import Ranges, united

_CHUNK = 2**17  # rows at a time, whose weights and scores stay in the cache
_WAITING = 4096  # rows added one by one that are looked at together
_MOST_ROWS = 2**62


class Total(NamedTuple):
    """Estimate of a total over all rows, from a sample."""

    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]


class _State(NamedTuple):
    """What a reservoir knows: the k + 1 best rows, and rows seen since that are better than the last of them."""

    parts: tuple[Rows, ...]
    bound: float  # score of the last of the best rows
    ranges: Ranges
    following: int  # number of the next row


class _Number:
    """Item of a row that was seen without one: its number."""


class Reservoir:
    """The k rows with the largest keys of all rows seen, a draw from p(S_wrs | w) of the paper (Algorithm 1).

    The key of a row depends on the seed, on the number of the row and on its weight alone. So the sample is the same
    for any division of the rows into parts that are merged, in any order. Row i of all rows must have the number i in
    its part too: a part says with `start` where it begins.

    Parameters
    ----------
    k : int
        Size of the sample.
    seed : int, optional
        The same seed gives the same sample, on every machine. By default the system draws one.
    start : int
        Number of the first row.

    Examples
    --------
    >>> from khot.reservoir import Reservoir
    >>> reservoir = Reservoir(2, seed=0)
    >>> reservoir.extend(["a", "b", "c", "d"], weights=[1, 2, 3, 4])
    >>> sample = reservoir.sample()

    Two parts give the same sample:

    >>> first, second = Reservoir(2, seed=0), Reservoir(2, seed=0, start=2)
    >>> first.extend(["a", "b"], weights=[1, 2])
    >>> second.extend(["c", "d"], weights=[3, 4])
    >>> first.merge(second).sample() == sample
    True

    Notes
    -----
    Inclusion is not proportional to the weight: the first draw is, and each later one among the rows that are left.
    Memory is O(k). Only rows whose key may be among the largest cost a logarithm.

    References
    ----------
    Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006. Cohen and Kaplan, "Summarizing data
    using bottom-k sketches", 2007, for `total`.
    """

    def __init__(self, k: int, seed: int | None = None, *, start: int = 0) -> None:
        self.k: int = _checks.whole("k", k, 0)
        self.seed: int = _checks.seed(seed)
        start = _checks.whole("start", start, 0)
        self._state = _State((Rows.none(),), math.inf, [], start)
        self._waiting: list[tuple[Any, float]] = []

    def __repr__(self) -> str:
        return f"Reservoir(k={self.k}, seed={self.seed}): {self.seen} rows seen"

    @property
    def seen(self) -> int:
        """Number of rows seen."""
        return sum(stop - first for first, stop in self._state.ranges) + len(self._waiting)

    def add(self, item: Any, weight: float = 1.0) -> None:
        """Take one more row into account.

        Parameters
        ----------
        item : object
            What `sample` returns for this row.
        weight : float
            Weight of the row, at least 0; with 0 it is never chosen.
        """
        if not 0.0 <= weight < math.inf:
            raise _bad_weight(weight, self._state.following + len(self._waiting), False)
        self._waiting.append((item, float(weight)))
        if len(self._waiting) >= _WAITING:
            self._settle()

    def extend(
        self,
        items: Iterable[Any] | None,
        weights: Iterable[float] | ArrayLike | None = None,
        *,
        log_weights: Iterable[float] | ArrayLike | None = None,
    ) -> None:
        """Take more rows into account. After an error, the reservoir is as it was before.

        Parameters
        ----------
        items : sequence, iterator or None
            What `sample` returns for the rows; None for the numbers of the rows.
        weights, log_weights : array or iterator, shape (n,), optional
            Weights, at least 0, or their logarithms, where -inf stands for a weight of 0. By default all are 1.
        """
        if weights is not None and log_weights is not None:
            raise InvalidTypeError("weights and log_weights exclude each other, but got both: pass one of them")
        self._settle()
        logs = log_weights is not None
        self._state = self._extended(self._state, items, log_weights if logs else weights, logs)

    def merge(self, *others: "Reservoir") -> Self:
        """Take the rows of other reservoirs, with the same k and seed, into account; returns this one."""
        for other in others:
            if not isinstance(other, Reservoir):
                raise InvalidTypeError(f"a Reservoir merges with reservoirs, but got {other!r}: pass Reservoir objects")
            if (other.k, other.seed) != (self.k, self.seed):
                raise InvalidValueError(
                    f"reservoirs must have the same k and seed, but got k={self.k}, seed={self.seed} and k={other.k}, "
                    f"seed={other.seed}: make all parts with the same"
                )
        parts = []
        for reservoir in (self, *others):
            reservoir._settle()
            parts.append(reservoir._state)
        ranges = united(*(part.ranges for part in parts))
        following = max((stop for _, stop in ranges), default=self._state.following)
        found = tuple(rows for part in parts for rows in part.parts)
        self._state = self._pruned(_State(found, math.inf, ranges, following))
        return self

    def sample(self) -> list[Any]:
        """Items of the sample in the order of the draws: in distribution, rows drawn one by one without replacement."""
        rows = self._chosen()
        pairs = zip(rows.ids.tolist(), rows.items.tolist(), strict=True)
        return [number if item is _Number else item for number, item in pairs]

    @property
    def ids(self) -> NDArray[np.int64]:
        """Numbers of the rows of the sample, in the order of the draws."""
        return self._chosen().ids

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the rows of the sample, in the order of the draws."""
        return np.exp(self._chosen().log_weights)

    @property
    def threshold(self) -> float:
        """The (k + 1)-th smallest exponential time -log(u) / w; inf if no row is left out."""
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_threshold(self._best())))

    @property
    def inclusion_probs(self) -> NDArray[np.float64]:
        """Chance of each row of the sample to be in it, given all other rows: 1 - exp(-weight times threshold)."""
        rows = self._best()
        with np.errstate(over="ignore"):
            return -np.expm1(-np.exp(rows.log_weights[: self.k] + self._log_threshold(rows)))

    def total(self, values: ArrayLike) -> Total:
        """Unbiased estimate of the total of values over all rows with a positive weight.

        Parameters
        ----------
        values : array, shape (k,) or (k, m)
            Values of the rows of the sample, in the order of `sample`.

        Returns
        -------
        Total
            The estimate, and its standard error from the sample.
        """
        q = self.inclusion_probs
        x = np.asarray(values, dtype=np.float64)
        if x.ndim == 0 or len(x) != len(q):
            raise InvalidValueError(
                f"values must have one entry for each of the {len(q)} rows of the sample, but got shape "
                f"{x.shape}: pass the values in the order of sample()"
            )
        q = q.reshape(-1, *[1] * (x.ndim - 1))
        return Total((x / q).sum(0), np.sqrt((x * x * (1 - q) / (q * q)).sum(0)))

    def to_bytes(self) -> bytes:
        """The reservoir as bytes, which `from_bytes` reads. Items must be texts, numbers, or lists of such."""
        rows, state = self._best(), self._state
        items = {place: item for place, item in enumerate(rows.items.tolist()) if item is not _Number}
        about = {"k": self.k, "seed": self.seed, "ranges": state.ranges, "following": state.following}
        return _storage.packed({**about, "items": [*items.items()]}, rows)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reservoir that `to_bytes` wrote."""
        about, columns = _storage.unpacked(data)
        items = np.full(len(columns["ids"]), _Number, object)
        for place, item in about["items"]:
            items[place] = item
        made = cls(about["k"], about["seed"])
        ranges = [(first, stop) for first, stop in about["ranges"]]
        made._state = made._pruned(_State((Rows(**columns, items=items),), math.inf, ranges, about["following"]))
        return made

    def _best(self) -> Rows:
        """The k + 1 best rows in their order."""
        self._settle()
        self._state = self._pruned(self._state)
        return in_order(*self._state.parts)

    def _chosen(self) -> Rows:
        return self._best().at(slice(self.k))

    def _log_threshold(self, rows: Rows) -> float:
        """Score of the last of the k + 1 best rows; inf if there are fewer."""
        return float(rows.scores[self.k]) if len(rows.scores) > self.k else math.inf

    def _settle(self) -> None:
        """Look at the rows that were added one by one."""
        if self._waiting:
            items, weights = zip(*self._waiting, strict=True)
            self._state = self._extended(self._state, items, np.array(weights), False)
            self._waiting = []

    def _extended(self, state: _State, items: Any, weights: Any, logs: bool) -> _State:
        for chunk, numbers in _chunks(items, weights):
            state = self._with_chunk(state, chunk, numbers, logs)
        return state

    def _with_chunk(self, state: _State, items: Any, weights: np.ndarray, logs: bool) -> _State:
        from khot.reservoir._compiled import SOUND, select

        start = state.following
        if start + len(weights) > _MOST_ROWS:
            raise InvalidValueError(
                f"row numbers must be below 2^62, but got {start + len(weights)}: pass a smaller start"
            )
        places, scores, bad = select(_seeds.key(self.seed), start, weights, logs, state.bound)
        if bad != SOUND:
            raise _bad_weight(weights[bad], start + bad, logs)
        chosen, own = weights[places], np.full(len(places), _Number, object)
        if items is not None:
            for i, place in enumerate(places.tolist()):
                own[i] = items[place]
        with np.errstate(divide="ignore"):
            found = Rows(scores, start + places, chosen if logs else np.log(chosen), own)
        following = start + len(weights)
        ranges = united(state.ranges, [(start, following)])
        state = _State((*state.parts, found), state.bound, ranges, following)
        return self._pruned(state) if sum(len(part.ids) for part in state.parts) > 2 * (self.k + 1) else state

    def _pruned(self, state: _State) -> _State:
        """Keep the k + 1 best rows; a later row must be better than the last of them."""
        rows = joined(*state.parts)
        rows = rows.at(smallest(rows, self.k + 1))
        bound = float(rows.scores.max()) if len(rows.ids) > self.k else math.inf
        return state._replace(parts=(rows,), bound=bound)


def _chunks(items: Any, weights: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Items, or None, and weights, some rows at a time."""
    if items is None and weights is None:
        raise InvalidTypeError("items and weights are both None: pass items, or weights to sample row numbers")
    sources = [None if source is None else _pieces(source) for source in (items, weights)]
    seen = 0
    while True:
        chunk, numbers = (None if source is None else source(seen) for source in sources)
        lengths = [len(part) for part in (chunk, numbers) if part is not None]
        if max(lengths) == 0:
            return
        if min(lengths) < max(lengths):
            raise InvalidValueError(
                f"items and weights must be equally many, but got {seen + lengths[0]} and {seen + lengths[1]}: "
                "pass one weight for each item"
            )
        yield chunk, np.ones(lengths[0]) if numbers is None else _floats(numbers)
        seen += lengths[0]


def _pieces(source: Any) -> Callable[[int], Sequence[Any]]:
    """The function that returns the rows of a sequence, an array or an iterator from a place on."""
    if hasattr(source, "__len__") and hasattr(source, "__getitem__") and not isinstance(source, dict):
        return lambda start: source[start : start + _CHUNK]
    if not isinstance(source, Iterable) or isinstance(source, dict | set):
        raise InvalidTypeError(f"items and weights must be sequences or iterators, but got {source!r}: pass a list")
    iterator = iter(source)
    return lambda _: list(islice(iterator, _CHUNK))


def _floats(weights: Any) -> np.ndarray:
    try:
        # a copy, since arrays that cannot be written have another type for Numba
        numbers = np.array(weights, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"weights must be numbers, but: {error}: convert them") from error
    if numbers.ndim != 1:
        raise InvalidValueError(f"weights must have one axis, but got shape {np.shape(weights)}: flatten them")
    return numbers


def _bad_weight(weight: float, number: int, logs: bool) -> InvalidValueError:
    if logs:
        return InvalidValueError(f"log_weights must be below infinity, but got {weight} in row {number}: correct it")
    return InvalidValueError(
        f"weights must be finite and at least 0, but got {weight} in row {number}: correct it, or leave the row out"
    )
