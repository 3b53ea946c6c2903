"""Rows on disk stay there."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import torch

from khot.embed import SubsetSNE
from khot.embed._scaling import learn_scaling

ROWS, COLUMNS = 1_000_000, 32
MEGABYTE = 2**20


class Largest(torch.overrides.TorchFunctionMode):
    """The bytes of the largest tensor that an operation of torch made."""

    size = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.size = max(self.size, result.untyped_storage().nbytes())
        return result


class StopsError(Exception):
    pass


def three_steps(step: int) -> float:
    if step == 3:
        raise StopsError
    return 1e-3


def test_a_million_rows_are_never_in_memory_together(tmp_path):
    """As float32 they are 122 MB; the order of an epoch, 8 MB, is the largest thing that the training needs."""
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (ROWS, COLUMNS))
    rows[::1000] = np.random.default_rng(0).normal(size=(ROWS // 1000, COLUMNS))
    rows.flush()
    del rows

    encoder = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 2))
    model = SubsetSNE(encoder=encoder, batch_size=500, pretrain=False, learning_rate=three_steps, random_state=0)
    with pytest.raises(StopsError):
        model.fit(np.eye(2500, COLUMNS))  # so that all modules are loaded
    tracemalloc.start()
    with pytest.raises(StopsError), Largest() as largest:
        model.fit(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * MEGABYTE
    assert 4 * MEGABYTE < largest.size < 20 * MEGABYTE


def test_many_sparse_columns_are_dense_in_small_pieces_only():
    rows = scipy.sparse.random(3000, 10_000, density=1e-3, format="csr", random_state=0)  # 229 MB if dense
    tracemalloc.start()
    learn_scaling(rows, "auto")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 90 * MEGABYTE
