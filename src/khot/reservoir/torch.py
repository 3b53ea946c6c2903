"""Weighted sampling without replacement for the data loaders of torch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch.distributed
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

from khot.errors import InvalidTypeError, InvalidValueError
from khot.reservoir import _checks, _seeds
from khot.reservoir.indices import sample_indices


class WeightedSampler(Sampler[int]):
    """Indices of a weighted sample without replacement, divided among the processes of a training.

    All processes together go through one draw of `num_samples` of all indices, in its order: process r of R gets the
    draws r, r + R, r + 2R, ... So their indices are disjoint and equally many. A remainder is left out, and the first
    draws of a sample are a smaller sample.

    Parameters
    ----------
    weights : array, shape (n,)
        Weights of the rows of the data set, at least 0.
    num_samples : int, optional
        Number of indices of all processes in an epoch; by default all with a positive weight, in weighted order.
    seed : int
        The same seed gives the same epochs, and must be the same in all processes.
    rank, num_replicas : int, optional
        This process and the number of processes; by default those of `torch.distributed`, or one process.

    Examples
    --------
    >>> from khot.reservoir.torch import WeightedSampler
    >>> halves = [WeightedSampler([1, 2, 3, 4, 5], 4, seed=0, rank=rank, num_replicas=2) for rank in (0, 1)]
    >>> [len(half) for half in halves], len({*halves[0], *halves[1]})
    ([2, 2], 4)

    Notes
    -----
    Call `set_epoch` before each epoch, otherwise all epochs have the same draw. With lightning-fabric, pass
    ``use_distributed_sampler=False`` to `setup_dataloaders`, which would put its own sampler in place of this one.
    """

    def __init__(
        self,
        weights: ArrayLike,
        num_samples: int | None = None,
        *,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        if (rank is None) != (num_replicas is None):
            raise InvalidTypeError("rank and num_replicas go together, but got one of them: pass both or neither")
        if rank is None or num_replicas is None:
            found = torch.distributed.is_available() and torch.distributed.is_initialized()
            rank = torch.distributed.get_rank() if found else 0
            num_replicas = torch.distributed.get_world_size() if found else 1
        self.num_replicas: int = _checks.whole("num_replicas", num_replicas, 1)
        self.rank: int = _checks.whole("rank", rank, 0)
        if self.rank >= self.num_replicas:
            raise InvalidValueError(f"rank must be below num_replicas={num_replicas}, but got {rank}: count from 0")
        self.weights: NDArray[np.float64] = np.asarray(weights, dtype=np.float64)
        self.seed: int = _checks.seed(seed)
        self.epoch: int = 0
        self._taken = 0
        positive = int(np.count_nonzero(self.weights > 0))
        self.num_samples: int = positive if num_samples is None else _checks.whole("num_samples", num_samples, 0)
        if self.num_samples > positive:
            raise InvalidValueError(
                f"num_samples must be at most the number of positive weights, {positive}, but got {num_samples}: "
                "draw fewer"
            )

    def __len__(self) -> int:
        return self.num_samples // self.num_replicas

    def __iter__(self) -> Iterator[int]:
        drawn = sample_indices(self.weights, self.num_samples, _seeds.key(self.seed, f"epoch {self.epoch}")[0])
        first, self._taken = self._taken, 0
        for place in range(first // self.num_replicas, len(self)):
            self._taken = (place + 1) * self.num_replicas
            yield int(drawn[place * self.num_replicas + self.rank])
        self._taken = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the draw of the next pass; must be the same in all processes."""
        if epoch != self.epoch:
            self.epoch, self._taken = _checks.whole("epoch", epoch, 0), 0

    def state_dict(self, taken: int | None = None) -> dict[str, Any]:
        """Where the pass is, for `load_state_dict`.

        Parameters
        ----------
        taken : int, optional
            Number of indices that this process has trained on in this epoch; by default those it has been given. A
            data loader with workers asks for more ahead of time, so pass batches times batch size.
        """
        mine = self._taken if taken is None else _checks.whole("taken", taken, 0) * self.num_replicas
        return {"seed": self.seed, "epoch": self.epoch, "taken": mine, "num_samples": self.num_samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was called, also with another number of processes."""
        if (state["seed"], state["num_samples"]) != (self.seed, self.num_samples):
            raise InvalidValueError(
                f"the state must be of a sampler with seed={self.seed} and num_samples={self.num_samples}, but got "
                f"seed={state['seed']} and num_samples={state['num_samples']}: make the sampler with these"
            )
        self.epoch, self._taken = state["epoch"], state["taken"]
