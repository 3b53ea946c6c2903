"""Compiled loops on torch's threads, which are OpenMP's, through its GNU interface.

These threads stay awake between torch operations and need no GIL. A pool of threads that wait on locks took 1.2 to 2
times as long for work that takes a third of a millisecond to a millisecond. Numba's `prange` cannot be used: its
built-in threading layers support either forks or calls from several threads, not both. One thread does all the work if
OpenMP is missing (torch is not loaded, or was built without it), and in a forked process, which has none of its
parent's threads.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from khot._jit.forks import FORKED

_SMALL = 100_000  # units of work, of about a nanosecond each, up to which one thread is faster than two
_BLOCK = 1_000_000  # units of work that are worth dividing further, so that no thread waits long for another
_TURNS = 8  # most blocks for each thread

_WORD, _POINTER, _UNSIGNED = ir.IntType(64), ir.IntType(8).as_pointer(), ir.IntType(32)
_MOST = 2**63 - 1
_NEXT, _LAST, _STEP, _LOWEST, _FAILED, _ARGUMENTS = range(6)  # what the threads share

_found: dict[str, int] = {}


def available() -> int:
    """Number of threads that a loop may use: the number that torch is set to, or 1."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch is not None and not FORKED and _openmp() else 1


def in_blocks(function: Callable[..., int], size: int, work: int, *arguments: Any) -> int:
    """Call a function that `khot._jit.compiler.kernel` made for range(size); returns the lowest number.

    `work` estimates the cost of one member of the range, in nanoseconds. If the total is small, one thread does it all.
    """
    total = size * work
    workers = available() if total >= _SMALL else 1
    if workers <= 1:
        return function(0, size, size, 1, 0, *arguments)
    turns = min(max(1, total // (workers * _BLOCK)), _TURNS)
    return function(0, size, -(-size // (workers * turns)), workers, _openmp(), *arguments)


def _openmp() -> int:
    """The address of ``GOMP_parallel(function, argument, threads, flags)`` in this process, 0 if there is none."""
    if "address" not in _found:
        try:
            pointer = ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p)
        except (AttributeError, OSError, TypeError):  # the latter on Windows
            pointer = ctypes.c_void_p()
        _found["address"] = pointer.value or 0
    return _found["address"]


def _divide(typing: Any, part: Any, arguments: Any, first: Any, last: Any, step: Any, workers: Any, fork: Any):
    """Call part(a, b, *arguments) for blocks from `first` to `last`, of `step` each, on several threads.

    `fork` is the address of `GOMP_parallel`, or 0 for this thread alone. Returns the lowest of the numbers that the
    part returned.
    """
    signature = typing.resolve_function_type(part, (types.int64, types.int64, *arguments.types), {})
    compiled = part.dispatcher.overloads[signature.args]

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        _, packed, first, last, step, workers, fork = values
        context.add_linking_libs([compiled.library])
        initial = [first, last, step, _WORD(_MOST), _WORD(0), packed]
        shared = cgutils.alloca_once(builder, ir.LiteralStructType([value.type for value in initial]))
        for place, value in enumerate(initial):
            builder.store(value, cgutils.gep_inbounds(builder, shared, 0, place))
        work, argument = _worker(context, builder.module, shared.type), builder.bitcast(shared, _POINTER)
        with builder.if_then(cgutils.is_not_null(builder, fork)):
            number = builder.trunc(workers, _UNSIGNED)
            builder.call(builder.inttoptr(fork, _FORK), [work, argument, number, _UNSIGNED(0)])
        builder.call(work, [argument])  # other threads may have taken all blocks
        failed, lowest = (builder.load(cgutils.gep_inbounds(builder, shared, 0, place)) for place in (_FAILED, _LOWEST))
        with builder.if_then(cgutils.is_not_null(builder, failed), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("out of memory in a compiled loop",))
        return lowest

    def _worker(context: Any, module: Any, kind: Any) -> Any:
        """The work of a thread: take the next block until there are no more."""
        name = module.get_unique_name(f"{part.dispatcher.__name__}_worker")
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER]), name)
        function.linkage = "internal"
        enter, turn, work, leave = (function.append_basic_block(name) for name in ("enter", "turn", "work", "leave"))

        builder = ir.IRBuilder(enter)
        shared = builder.bitcast(function.args[0], kind)
        place = [cgutils.gep_inbounds(builder, shared, 0, i) for i in range(_ARGUMENTS + 1)]
        last, step, packed = (builder.load(place[i]) for i in (_LAST, _STEP, _ARGUMENTS))
        own = cgutils.unpack_tuple(builder, packed, len(arguments.types))
        builder.branch(turn)

        builder.position_at_end(turn)
        a = builder.atomic_rmw("add", place[_NEXT], step, "monotonic")
        builder.cbranch(builder.icmp_signed("<", a, last), work, leave)

        builder.position_at_end(work)
        b = builder.add(a, step)
        b = builder.select(builder.icmp_signed("<", b, last), b, last)
        status, result = context.call_internal_no_propagate(builder, compiled.fndesc, signature, [a, b, *own])
        builder.atomic_rmw("or", place[_FAILED], builder.zext(status.is_error, _WORD), "monotonic")
        number = context.cast(builder, result, signature.return_type, types.int64)
        builder.atomic_rmw("min", place[_LOWEST], number, "monotonic")
        builder.branch(turn)

        builder.position_at_end(leave)
        builder.ret_void()
        return function

    return types.int64(part, arguments, *[types.int64] * 5), generate


divide: Any = intrinsic(_divide)
_FORK = ir.FunctionType(
    ir.VoidType(), [ir.FunctionType(ir.VoidType(), [_POINTER]).as_pointer(), _POINTER, _UNSIGNED, _UNSIGNED]
).as_pointer()
