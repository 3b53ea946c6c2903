"""Compiled loops on the threads of torch itself, which are awake between its operations and need no GIL.

These are OpenMP's, by its GNU interface. They do not survive a fork, and not every build of torch has them: where
`usable` says no, `khot._jit.pool` has others.
"""

import ctypes
from typing import Any

import torch  # noqa: F401  loads OpenMP, for all to see
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from khot._jit.forks import FORKED

_FORK = "GOMP_parallel"  # void (void (*function)(void *), void *argument, unsigned threads, unsigned flags)
_WORD, _POINTER, _UNSIGNED = ir.IntType(64), ir.IntType(8).as_pointer(), ir.IntType(32)
_MOST = 2**63 - 1
_NEXT, _LAST, _STEP, _LOWEST, _FAILED, _ARGUMENTS = range(6)  # what the threads share


def _find() -> bool:
    """Tell the compiler where to find OpenMP; returns whether it is there."""
    try:
        address = ctypes.cast(getattr(ctypes.CDLL(None), _FORK), ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):  # the latter on Windows
        return False
    binding.add_symbol(_FORK, address)
    return True


FOUND = _find()


def usable() -> bool:
    """Whether `divide` may be called for several threads."""
    return FOUND and not FORKED


def _divide(typing: Any, kernel: Any, arguments: Any, first: Any, last: Any, step: Any, threads: Any):
    """Call kernel(a, b, *arguments) for blocks from `first` to `last`, of `step` each, on so many threads.

    Returns the lowest of the numbers that the kernel returned.
    """
    signature = typing.resolve_function_type(kernel, (types.int64, types.int64, *arguments.types), {})
    compiled = kernel.dispatcher.overloads[signature.args]

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        _, packed, first, last, step, threads = values
        context.add_linking_libs([compiled.library])
        initial = [first, last, step, _WORD(_MOST), _WORD(0), packed]
        shared = cgutils.alloca_once(builder, ir.LiteralStructType([value.type for value in initial]))
        for place, value in enumerate(initial):
            builder.store(value, cgutils.gep_inbounds(builder, shared, 0, place))
        work, argument = _worker(context, builder.module, shared.type), builder.bitcast(shared, _POINTER)
        if FOUND:
            with builder.if_then(builder.icmp_signed(">", threads, _WORD(1))):
                number = builder.trunc(threads, _UNSIGNED)
                builder.call(_fork(builder.module), [work, argument, number, _UNSIGNED(0)])
        builder.call(work, [argument])  # after the others there is nothing left to do
        failed, lowest = (builder.load(cgutils.gep_inbounds(builder, shared, 0, place)) for place in (_FAILED, _LOWEST))
        with builder.if_then(cgutils.is_not_null(builder, failed), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("out of memory in a compiled loop",))
        return lowest

    def _worker(context: Any, module: Any, kind: Any) -> Any:
        """What every thread does: takes the next block, until there are no more."""
        name = module.get_unique_name(f"{kernel.dispatcher.__name__}_worker")
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

    words = [types.int64] * 4
    return types.int64(kernel, arguments, *words), generate


divide: Any = intrinsic(_divide)


def _fork(module: Any) -> Any:
    function = ir.FunctionType(ir.VoidType(), [_POINTER]).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [function, _POINTER, _UNSIGNED, _UNSIGNED])
    return cgutils.get_or_insert_function(module, kind, _FORK)
