"""Decorators for compiled functions: parts, which Python cannot call, and kernels, which consist of parts.

Numba optimises every function that another one calls, translates it into machine code and links it into its caller,
where all of it is optimised again: for functions that call each other ten levels deep this takes most of the time.
Here a part is only type-checked and lowered; a kernel links all parts that it reaches, and they are optimised once,
together. A part costs nothing at run time: LLVM puts it in place of every call.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite.binding import Linkage
from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types import unliteral

from khot._jit import threads
from khot._jit.cache import keep_on_disk
from khot._jit.notice import compiling

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


KERNELS: list[Any] = []
"""All kernels that have been imported."""


class _NoEnvironment:
    """Replacement for the code that passes the Python objects of a function: parts have none."""

    @staticmethod
    def set_env(_name: str, _environment: Any) -> None:
        pass


class _PartLibrary(JITCodeLibrary):
    """Intermediate code of a part, neither optimised nor loaded."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave this to the passes over a whole kernel."""
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"  # as several kernels hold it
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """The code of this part and of all that it reaches, for a function that is not a kernel of khot."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            _link(self._shared_module, self._linking_libraries)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment


class _LoopLibrary(_PartLibrary):
    """A part that is optimised alone first: within a large kernel LLVM does not vectorise every loop."""

    def finalize(self) -> None:
        _link(self._final_module, self._linking_libraries)
        self._linking_libraries = []
        self._optimize_final_module()
        super().finalize()


class _PartCompiler(Compiler):
    library: type = _PartLibrary

    def compile_extra(self, func: Callable) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _LoopCompiler(_PartCompiler):
    library = _LoopLibrary


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel with all parts that it reaches."""

    def finalize(self) -> None:
        _link(self._final_module, self._linking_libraries)
        self._linking_libraries = []
        super().finalize()


class _RareLibrary(_KernelLibrary):
    """The code of a kernel that few rows need: compiled quickly rather than made fast."""

    def _optimize_final_module(self) -> None:
        manager, builder = self._codegen._module_pass_manager(opt=1, loop_vectorize=False, slp_vectorize=False)
        manager.run(self._final_module, builder)


def _link(module: Any, libraries: Iterable[Any]) -> None:
    """Link a module with all that it reaches, each once."""
    for library in _reached(libraries, {}):
        is_part = isinstance(library, _PartLibrary)
        module.link_in(library._final_module if is_part else library._get_module_for_linking(), preserve=True)


def _reached(libraries: Iterable[Any], found: dict[Any, None]) -> dict[Any, None]:
    for library in libraries:
        if library not in found:
            found[library] = None
            if isinstance(library, _PartLibrary):
                _reached(library._linking_libraries, found)
    return found


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause Python's collector of garbage: it would look through Numba's many objects for a seventh of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _KernelCompiler(Compiler):
    library: type = _KernelLibrary

    def compile_extra(self, func: Callable) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        with compiling(), uncollected():
            return super().compile_extra(func)


class _RareCompiler(_KernelCompiler):
    library = _RareLibrary


def part_options(fastmath: set[str], arrays: bool = False, loop: bool = False) -> dict[str, Any]:
    """Options of a part, for `numba.njit` and `numba.extending.overload`."""
    here = {"pipeline_class": _LoopCompiler if loop else _PartCompiler, "no_cpython_wrapper": True}
    return {**OPTIONS, **here, "fastmath": fastmath or False, "_nrt": arrays, "forceinline": not arrays}


def _part(fastmath: set[str], arrays: bool = False, loop: bool = False) -> Callable[[Callable], Any]:
    def made(function: Callable) -> Any:
        dispatcher: Any = njit(**part_options(fastmath, arrays, loop))(function)  # pyright: ignore[reportCallIssue]
        for_types = dispatcher.get_call_template
        # a constant is a type of its own for Numba, which would compile the part once for each
        dispatcher.get_call_template = lambda args, kws: for_types([unliteral(kind) for kind in args], kws)
        dispatcher._insert = lambda *_: None  # there is no machine code of a part alone
        dispatcher._compile_for_args = _refuse
        return dispatcher

    return made


def _refuse(*_: Any, **__: Any) -> None:
    raise TypeError("a part of a kernel was called from Python: call it from a kernel, or its `py_func`")


view = inline = njit(inline="always")
"""For functions that return views of arrays, and for formulas that follow the rules of their caller.

Their source is put in place of every call.
"""

ieee = _part(set(), arrays=True)
"""For arithmetic whose order and rounding must not change."""

portable = _part(set(), loop=True)
"""For loops over many numbers, whose results have the same bits on every processor."""

fma = _part({"contract"})
"""For arithmetic whose order matters.

This, `loop`, `reorder` and `no_nan` can take arrays and cut views of them, but not return them.
"""

allocates = _part({"contract"}, arrays=True)
"""`fma` for functions that make or return arrays, or call such: they count references, which takes time."""

loop = _part({"contract"}, loop=True)
"""`fma` for loops over many numbers, which LLVM vectorises."""

reorder = _part({"contract", "reassoc", "nsz"}, loop=True)
"""For sums, which may be taken in the order of the vector lanes."""

no_nan = _part({"contract", "reassoc", "nsz", "nnan"}, loop=True)
"""For maxima, which LLVM vectorises only so. With a NaN among the numbers the result is any number."""


def rare_kernel(part: Any) -> Any:
    """Make a `kernel` that few rows need: it compiles sooner and runs more slowly."""
    return kernel(part, _RareCompiler)


def kernel(part: Any, pipeline: type = _KernelCompiler) -> Any:
    """Turn part(first, last, *arguments), which returns a number, into a function that Python can call.

    That is function(first, last, step, workers, fork, *arguments), see `khot._jit.threads.in_blocks`. It calls the part
    for blocks of `step`, in any order, and returns the lowest of the numbers.
    """

    def function(first, last, step, workers, fork, *arguments):
        return threads.divide(part, arguments, first, last, step, workers, fork)

    function.__qualname__ = f"{part.__name__}_kernel.{part.__module__}"
    options: dict[str, Any] = {**OPTIONS, "fastmath": {"contract"}, "_nrt": True}
    dispatcher = njit(**options, pipeline_class=pipeline)(function)
    keep_on_disk(dispatcher)
    KERNELS.append(dispatcher)
    return dispatcher
