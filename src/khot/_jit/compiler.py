"""Decorators that compile a function, without the GIL, and keep the machine code on disk if that can be written."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from khot._jit import team

_PACKAGE = Path(__file__).parents[1]
_SOURCES = sorted([*_PACKAGE.glob("_jit/*.py"), *_PACKAGE.rglob("_compiled.py"), *_PACKAGE.rglob("_compiled/*.py")])
_STAMP = sha256(b"".join([*(path.read_bytes() for path in _SOURCES), bytes([team.FOUND])])).hexdigest()

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class _Files(IndexDataCacheFile):
    """Numba's files of a function: an index, and the machine code for each signature.

    Numba numbers the latter, and indexes them before they are written; processes that compile at the same time then may
    write the code for two signatures into one file. Ours have names of their own and are written first.
    """

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name(int.from_bytes(sha256(repr(key).encode()).digest()[:8]))
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


class _Cache(FunctionCache):
    """Numba's cache on disk; a full disk or a damaged file only costs the time to compile again.

    Numba keeps a function until its own file changes, or what it closes over. Ours call each other across files, so any
    change counts, and only that: what it closes over is one of us.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, _STAMP)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, EOFError, UnpicklingError, AttributeError, ImportError):  # the latter of an older release
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def _compiled(fastmath: set[str], arrays: bool = False) -> Callable[[Callable], Any]:
    options = {**OPTIONS, "fastmath": fastmath or False, "_nrt": arrays, "forceinline": not arrays}

    def decorate(function: Callable) -> Any:
        dispatcher: Any = njit(**options)(function)
        with suppress(RuntimeError):  # there may be no folder that can be written
            dispatcher._cache = _Cache(function)
        return dispatcher

    return decorate


ieee = _compiled(set(), arrays=True)
"""For arithmetic that must be done as it is written."""

fma = _compiled({"contract"})
"""For arithmetic whose order matters.

This, `reorder` and `no_nan` are put in place of every call: to hand over arrays takes as long as a short loop.
"""

allocates = _compiled({"contract"}, arrays=True)
"""The same for functions that make or return arrays, or call such: they count references, which takes time.

All others can only take arrays and cut views of them.
"""

reorder = _compiled({"contract", "reassoc", "nsz"})
"""For sums, which may be taken in the order of the vector lanes."""

no_nan = _compiled({"contract", "reassoc", "nsz", "nnan"})
"""For maxima, which LLVM vectorises only so. With a NaN among the numbers the result is any number."""


def shared(kernel: Any) -> Any:
    """Make of a compiled kernel(first, last, *arguments), which returns a number, one for several threads.

    That is function(first, last, step, threads, *arguments). It calls the kernel for blocks of `step`, in any order,
    and returns the lowest of the numbers.
    """

    def function(first, last, step, threads, *arguments):
        return team.divide(kernel, arguments, first, last, step, threads)

    function.__qualname__ = f"shared.{kernel.__module__}.{kernel.__name__}"
    return allocates(function)
