"""Work over as many threads as torch uses: on its own where they can be had (`khot._jit.team`), or else on these.

Numba's own `prange` does not survive both forks and threads. These are helper threads that are forgotten after a fork.
They wait at bare locks: for tables that one thread does in a third of a millisecond, the futures of a thread pool take
too long.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple, TypeVar

import torch

from khot._jit import team

T = TypeVar("T")

_PATIENCE = 2e-4  # seconds


class _Cost(NamedTuple):
    """Of threads, in units of work, of about a nanosecond each."""

    small: int  # what one does faster than two
    block: int  # what is worth to be divided further, lest a thread waits for another at the end


_OF_TEAM, _OF_HELPERS = _Cost(100_000, 1_000_000), _Cost(400_000, 200_000)
_TURNS = 8  # of each thread at most


class _Helper:
    """A thread that does a job at a time, and sleeps in between."""

    def __init__(self) -> None:
        self._job: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._ordered, self._done = threading.Lock(), threading.Lock()
        self._ordered.acquire()
        self._done.acquire()
        threading.Thread(target=self._work, name="khot", daemon=True).start()

    def _work(self) -> None:
        while self._ordered.acquire():
            try:
                self._job()  # pyright: ignore[reportOptionalCall]
            except BaseException as error:
                self._error = error
            self._job = None
            self._done.release()

    def begin(self, job: Callable[[], None]) -> None:
        """Order the job."""
        self._job = job
        self._ordered.release()

    def end(self) -> BaseException | None:
        """Take back the order, or wait until the job is done; returns its error."""
        if not self._ordered.acquire(blocking=False):
            self._wait()
        error, self._job, self._error = self._error, None, None
        return error

    def _wait(self) -> None:
        """Wait in turns at first: a thread that sleeps wakes up later than most jobs take."""
        patience = time.perf_counter() + _PATIENCE
        while not self._done.acquire(blocking=False):
            if time.perf_counter() > patience:
                self._done.acquire()
                return
            time.sleep(0)


_idle: list[_Helper] = []
_missing: list[None] = []  # one for each helper that may yet be made


def _forget() -> None:
    _idle.clear()
    _missing[:] = [None] * max(1, (os.cpu_count() or 1) - 1)


_forget()
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork either
    os.register_at_fork(after_in_child=_forget)


def threads() -> int:
    """How many threads work at once."""
    return torch.get_num_threads()


def in_blocks(function: Callable[..., int], size: int, work: int, *arguments: Any) -> int:
    """Call a function that `khot._jit.compiler.shared` made for range(size); returns the lowest number.

    `work` is about what one member of the range costs. If all of it is small, one thread does it.
    """
    together = team.usable()
    cost, total = _OF_TEAM if together else _OF_HELPERS, size * work
    workers = threads() if total >= cost.small else 1
    if workers <= 1:
        return function(0, size, size, 1, *arguments)
    turns = min(max(1, total // (workers * cost.block)), _TURNS)
    step = -(-size // (workers * turns))
    if together:
        return function(0, size, step, workers, *arguments)
    lowest: list[int] = []

    def block(first: int) -> None:
        lowest.append(function(first, min(first + step, size), step, 1, *arguments))

    each(block, range(0, size, step))
    return min(lowest)


def each(function: Callable[[T], None], items: Sequence[T]) -> None:
    """Call the function with each of the items, over the threads; returns when all are done."""
    workers = min(threads(), len(items))
    if workers <= 1:
        for item in items:
            function(item)
        return
    turns, helpers = count(), _helpers(workers - 1)

    def drain() -> None:
        while (turn := next(turns)) < len(items):
            function(items[turn])

    for helper in helpers:
        helper.begin(drain)
    try:
        drain()
    finally:
        errors = _end(helpers)
    for error in errors:
        raise error


def _helpers(wanted: int) -> list[_Helper]:
    """So many idle helpers, or fewer if others are at work with them, or the interpreter ends."""
    found: list[_Helper] = []
    with suppress(IndexError):
        while len(found) < wanted:
            found.append(_idle.pop())
    with suppress(IndexError, RuntimeError):  # no more may be made, or can be
        while len(found) < wanted:
            _missing.pop()
            found.append(_Helper())
    return found


def _end(helpers: list[_Helper]) -> list[BaseException]:
    """Wait for the helpers; returns their errors."""
    try:
        errors = [helper.end() for helper in helpers]
    except BaseException:  # Ctrl-C: others will take the place of those that may still be at work
        _missing.extend(None for _ in helpers)
        raise
    _idle.extend(helpers)
    return [error for error in errors if error is not None]
