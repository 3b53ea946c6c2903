"""Work over a few threads, for kernels that release the GIL.

Numba's own `prange` does not survive both forks and threads. This is a thread pool that is forgotten after a fork, with
as many threads as torch uses, the calling one included.
"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import count
from typing import TypeVar

import torch

T = TypeVar("T")

_SMALL = 200_000  # units of work, of about a nanosecond each, that one thread does faster than two
_BLOCK = 100_000  # units of work in a block, at least
_PATIENCE = 2e-4  # seconds
_pool: ThreadPoolExecutor | None = None


def _forget() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork either
    os.register_at_fork(after_in_child=_forget)


def threads() -> int:
    """How many threads work at once."""
    return torch.get_num_threads()


def blocks(size: int, work: int) -> list[slice]:
    """Cut range(size) into blocks: a few for each thread, or one if all work together is small.

    `work` is about what one member of the range costs.
    """
    workers = threads() if size * work >= _SMALL else 1
    parts = 1 if workers <= 1 else max(workers, min(size * work // _BLOCK, 8 * workers))
    step = max(1, -(-size // parts))
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def each(function: Callable[[T], None], items: Sequence[T]) -> None:
    """Call the function with each of the items, over the threads; returns when all are done."""
    global _pool
    workers = min(threads(), len(items))
    if workers <= 1:
        for item in items:
            function(item)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="khot")
    turns = count()

    def drain() -> None:
        while (turn := next(turns)) < len(items):
            function(items[turn])

    helpers: list[Future[None]] = []
    with suppress(RuntimeError):  # while the interpreter ends there are no helpers
        for _ in range(workers - 1):
            helpers.append(_pool.submit(drain))
    try:
        drain()
    finally:
        running = [helper for helper in helpers if not helper.cancel()]
        _wait(running)
    for helper in running:
        helper.result()


def _wait(helpers: list[Future[None]]) -> None:
    """Wait in turns at first: a thread that sleeps wakes up later than most helpers need."""
    patience = time.perf_counter() + _PATIENCE
    while not all(helper.done() for helper in helpers):
        if time.perf_counter() > patience:
            wait(helpers)
        time.sleep(0)
