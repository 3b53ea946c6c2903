"""Compile all loops beforehand: for container images, cluster nodes and CI, where the first call should not wait."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch

from khot import _checks, _jit
from khot.errors import InvalidTypeError, NotAvailableError

DTYPES = ("float32", "float64")
_COLD, _WARM = 0.05, 1.0


class Warmed(NamedTuple):
    """What `warmup` did."""

    compiled: int
    """Number of loops that it compiled."""
    loaded: int
    """Number of loops that were on disk already."""
    seconds: float
    """Processor seconds."""
    folder: str | None
    """Where the machine code is kept; None if no folder can be written."""


def warmup(dtypes: Sequence[str] = DTYPES) -> Warmed:
    """Compile the CPU loops of all operators, and keep the machine code on disk.

    Without it a loop is compiled when it is first called, once for each version of khot and each kind of processor.

    Parameters
    ----------
    dtypes : sequence of {"float32", "float64"}
        Dtypes of the keys; half-precision keys use the loops of float32.

    Returns
    -------
    Warmed
        The number of loops that were compiled, and of those that were there already, the processor seconds it took, and
        the folder.

    Raises
    ------
    NotAvailableError
        If Numba is not installed: then there is nothing to compile.
    InvalidValueError, InvalidTypeError
        For an unknown dtype, or none.

    Notes
    -----
    The folder is the one that the environment variable ``NUMBA_CACHE_DIR`` names, or else ``__pycache__`` next to the
    source, or the user's cache if that cannot be written. The code is for the processor at hand;
    ``khot warmup --cpu x86-64-v3`` makes code for every processor with the features of that level.
    """
    dtypes = (dtypes,) if isinstance(dtypes, str) else dtypes
    if not isinstance(dtypes, Sequence) or not dtypes:
        raise InvalidTypeError(f"dtypes must be a list of {' and '.join(DTYPES)}, but got {dtypes!r}: name one of them")
    for dtype in dtypes:
        _checks.choice("dtype", dtype, DTYPES)
    if not _jit.AVAILABLE:
        raise NotAvailableError("there is nothing to compile, as Numba is not installed: install numba")
    before = time.process_time()
    from khot._jit.compiler import KERNELS, uncollected

    for dtype in dtypes:
        with uncollected():
            _call_all(getattr(torch, dtype))
    stats = [kernel.stats for kernel in KERNELS]
    compiled, loaded = (
        sum(sum(getattr(part, name).values()) for part in stats) for name in ("cache_misses", "cache_hits")
    )
    folders = {part.cache_path for part in stats if part.cache_path}
    return Warmed(compiled, loaded, time.process_time() - before, min(folders, default=None))


def _call_all(dtype: torch.dtype) -> None:
    """Call every loop once."""
    from khot.embed.logits import input_logits
    from khot.keys import gumbel_keys, reservoir_keys
    from khot.reservoir import sample_indices
    from khot.topk import capped_simplex, successive_softmax

    generator = torch.Generator().manual_seed(0)
    reservoir_keys(torch.ones(3, dtype=dtype), generator)
    keys = gumbel_keys(torch.zeros(2, 200, dtype=dtype), generator).requires_grad_()
    ties = torch.cat([torch.tensor([25.0, 25.0 - 2e-6]), torch.linspace(-25, -10, 48)]).to(dtype).requires_grad_()
    for leaf, k, temperature in ((keys, 4, _WARM), (keys, 40, _WARM), (keys, 4, _COLD), (ties, 45, _COLD)):
        successive_softmax(leaf, k, temperature).sum().backward()
    capped_simplex(keys, 4, _WARM).sum().backward()
    input_logits(torch.eye(5), 2.0)
    sample_indices([1.0, 2.0], 1, seed=0)
