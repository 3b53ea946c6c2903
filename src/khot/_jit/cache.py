"""Machine code on disk: where it is kept, when it is stale, and for which processors it is valid."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from llvmlite import binding
from numba.core.caching import FunctionCache, IndexDataCacheFile

_PACKAGE = Path(__file__).parents[1]
_SOURCES = sorted([*_PACKAGE.glob("_jit/*.py"), *_PACKAGE.rglob("_compiled.py"), *_PACKAGE.rglob("_compiled/*.py")])
_STAMP = sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()

# damaged files, and files of older releases, whose classes have gone
_UNREADABLE = (OSError, EOFError, ValueError, UnpicklingError, AttributeError, ImportError)

LEVELS = {  # levels of x86-64 processors, the newest first, with the LLVM names of the features that each one adds
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v2": ("cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"),
}


def features_of(level: str) -> str:
    """Features of a level, in the form of `NUMBA_CPU_FEATURES`."""
    names = list(LEVELS)
    return ",".join(f"+{feature}" for name in names[names.index(level) :] for feature in LEVELS[name])


def _levels_of_this_machine() -> list[str]:
    """Levels whose code this processor can run, the newest first."""
    if not binding.get_process_triple().startswith("x86_64"):
        return []
    have = binding.get_host_cpu_features()
    return [level for level in LEVELS if all(have.get(name.strip("+")) for name in features_of(level).split(","))]


class _Files(IndexDataCacheFile):
    """Files of a function: an index, and the machine code for each signature.

    Numba numbers the code files and indexes them before it writes them, so that two processes that compile at the same
    time may write the code for two signatures into one file. These files have unique names and are written first.
    """

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name(int.from_bytes(sha256(repr(key).encode()).digest()[:8]))
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


class _Cache(FunctionCache):
    """Cache on disk; after a full disk or a damaged file, code is compiled again.

    Numba's own cache is valid until the file of a function changes. Here functions call each other across files, so the
    cache is valid until any file with compiled code changes. Code for one of the `LEVELS` is used by each processor
    with its features, unless there is code for that processor itself.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, _STAMP)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        triple, name, features = codegen.magic_tuple()
        return sig, triple, name, name if name in LEVELS else features

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except _UNREADABLE:
            with suppress(OSError):
                self.flush()
            return None

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        triple, *_ = target_context.codegen().magic_tuple()
        own = self._index_key(sig, target_context.codegen())
        for key in (own, *((sig, triple, level, level) for level in _levels_of_this_machine())):
            data = self._cache_file.load(key)
            if data is not None:
                return self._impl.rebuild(target_context, data)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def keep_on_disk(dispatcher: Any) -> None:
    """Let Numba keep the machine code of a function, if there is a folder that can be written."""
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(dispatcher.py_func)
