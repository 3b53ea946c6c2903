"""Batches of rows, which any number of processes can reproduce for any step."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot.errors import InvalidTypeError, InvalidValueError
from khot.training.steps import key


def parts(data: Any) -> dict[str, Any]:
    """Tensors and arrays of `data` by name or number."""
    if isinstance(data, dict):
        return {str(name): part for name, part in data.items()}
    return {str(i): part for i, part in enumerate(data if isinstance(data, tuple | list) else [data])}


def count_rows(data: Any) -> int:
    """Common length of all tensors and arrays."""
    lengths = {}
    for name, part in parts(data).items():
        if not isinstance(part, Tensor | np.ndarray) and not _is_sparse(part):
            raise InvalidTypeError(
                "data must be a tensor, an array or a sparse CSR array, or a tuple, list or dict of them, "
                f"but got {type(part).__name__} as part {name}: convert it with torch.as_tensor"
            )
        if isinstance(part, np.ndarray) and part.dtype.kind not in "biufc":
            raise InvalidTypeError(
                f"data must be numbers, but part {name} has dtype {part.dtype}: convert it with astype"
            )
        if part.ndim == 0:
            raise InvalidValueError(f"data must consist of rows, but part {name} has shape (): add an axis in front")
        lengths[name] = part.shape[0]
    if not lengths:
        raise InvalidValueError("data must have a tensor or array, but got none: pass one")
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(
            f"all parts of data must have the same number of rows, but got {lengths}: cut them to one length"
        )
    return next(iter(lengths.values()))


class Batches:
    """Batch of any step: the share of one process in a slice of the epoch's permutation.

    The shares of all processes, concatenated, are the batch that a single process would have.
    """

    def __init__(self, data: Any, batch_size: int, seed: int, rank: int = 0, processes: int = 1) -> None:
        self.data, self.batch_size, self.seed = data, batch_size, seed
        self.count = count_rows(data)
        self.per_epoch = self.count // batch_size
        self.share = batch_size // processes
        self.offset = rank * self.share
        self._epoch, self._order = -1, torch.empty(0)

    def rows(self, number: int) -> Tensor:
        """Rows of this process at step `number`."""
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            noise = torch.Generator().manual_seed(key(self.seed, "rows", epoch))
            self._epoch, self._order = epoch, torch.randperm(self.count, generator=noise)
        start = place * self.batch_size + self.offset
        return self._order[start : start + self.share]

    def take(self, rows: Tensor) -> Any:
        """Data of `rows` as tensors, in the same structure as all data."""
        if isinstance(self.data, dict):
            return {name: _take(part, rows) for name, part in self.data.items()}
        if isinstance(self.data, tuple | list):
            return tuple(_take(part, rows) for part in self.data)
        return _take(self.data, rows)


def _take(part: Any, rows: Tensor) -> Tensor:
    return part[rows.to(part.device)] if isinstance(part, Tensor) else torch.from_numpy(take_array(part, rows.numpy()))


def take_array(part: Any, rows: np.ndarray) -> np.ndarray:
    """Rows of an array, dense even if the array is sparse."""
    return part[rows].toarray() if _is_sparse(part) else part[rows]


def _is_sparse(part: Any) -> bool:
    """Whether a value is a sparse array of SciPy in CSR form."""
    return getattr(part, "format", None) == "csr"
