"""Checks of arguments. An error says what was wrong, what was passed and what to do.

Types and shapes are always checked. Values are checked where they can be read, which is not possible under
`torch.func.vmap` and while `torch.compile` traces. There, a row with bad values becomes NaN (`hidden`, `usable`).
"""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from khot._relaxations import RELAXATIONS
from khot.errors import InvalidTypeError, InvalidValueError

_OF_NUMPY = (torch.float32, torch.float64)
_SIZES = "lie between 0 and the number of items, {}"


def holds(condition: Tensor) -> bool:
    """Whether `condition` can be read without waiting for a device, and is true somewhere."""
    if torch.compiler.is_compiling() or not condition.is_cpu:
        return False
    try:
        return bool(condition.any())
    except RuntimeError:  # under vmap, or a tensor without data (meta, fake)
        return False


def hidden(*values: object) -> bool:
    """Whether values may be unreadable: torch is tracing, or a function transform has wrapped one of them."""
    if torch.compiler.is_compiling():
        return True
    if torch._C._functorch.peek_interpreter_stack() is None:  # pyright: ignore[reportAttributeAccessIssue]
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore[reportAttributeAccessIssue]
    return any(isinstance(x, Tensor) and wrapped(x) for x in values)


def observed(*values: object) -> bool:
    """Whether torch observes operations on values: they may be unreadable, or a dispatch mode or forward mode is on."""
    if hidden(*values):
        return True
    return torch._C._len_torch_dispatch_stack() > 0 or torch.autograd.forward_ad._current_level >= 0


def usable(keys: Tensor) -> Tensor:
    """Whether each row of logits or keys is free of NaN and +inf, (...)."""
    return (keys < math.inf).all(-1)


def _bad_entry(name: str, must: str, bad: Tensor, values: Tensor, hint: str) -> InvalidValueError:
    """An error that shows the first bad entry and its index."""
    index = tuple(int(i) for i in bad.nonzero()[0])
    got = f"{values[index].item()} at index {index}" if index else f"{values.item()}"
    return InvalidValueError(f"{name} must {must}, but got {got}: {hint}")


def is_integer(value: object) -> bool:
    """Whether `value` is a Python or NumPy integer, and not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def float_tensor(name: str, value: Any) -> Tensor:
    """Check a floating-point tensor with a non-empty item axis."""
    if not isinstance(value, Tensor):
        raise InvalidTypeError(
            f"{name} must be a torch.Tensor, but got {type(value).__name__}: wrap it in torch.as_tensor"
        )
    if not value.is_floating_point():
        raise InvalidTypeError(
            f"{name} must be a floating-point tensor, but got {value.dtype}: convert it with .float()"
        )
    if value.ndim == 0 or value.shape[-1] == 0:
        raise InvalidValueError(
            f"{name} must have at least one item on its last axis, but got shape {tuple(value.shape)}: "
            "pass a tensor of shape (..., n) with n >= 1"
        )
    return value


def logits(value: Any, name: str = "logits") -> Tensor:
    """Check log-weights or keys: finite, or -inf for an absent item."""
    tensor = float_tensor(name, value)
    if tensor.numel() and not _largest(tensor.detach()) < math.inf:  # one pass; the largest of NaN is NaN
        hint = "look for an overflow or a division by zero in the code that computes them"
        raise _bad_entry(name, "be finite, or -inf for an absent item", ~(tensor < math.inf), tensor, hint)
    return tensor


def _largest(tensor: Tensor) -> float:
    """The largest entry, or NaN if there is one; 0 if it cannot be read.

    NumPy uses one thread. torch would wake a second one, which then spins for a millisecond and slows down the compiled
    loops that follow.
    """
    if hidden(tensor):
        return 0.0
    try:
        if tensor.dtype in _OF_NUMPY and tensor.device.type == "cpu" and tensor.numel() < 2**22:
            return float(tensor.numpy().max())
        return float(tensor.amax())
    except (RuntimeError, TypeError):  # a tensor without data (meta, fake)
        return 0.0


def weights(value: Any) -> Tensor:
    """Check weights of a reservoir: finite and non-negative, 0 for an absent item."""
    tensor = float_tensor("weights", value)
    bad = ~((tensor >= 0) & (tensor < math.inf))
    if holds(bad):
        hint = "pass weights, not their logarithms (those go to gumbel_keys)"
        raise _bad_entry("weights", "be finite and >= 0", bad, tensor, hint)
    return tensor


def problem(keys: Any, k: Any, t: Any, k_max: int | None = None) -> tuple[Tensor, int | Tensor, float | Tensor, int]:
    """Check the arguments of a relaxation, but for the values of the keys; also returns the largest k.

    k is an int or an int64 tensor, the temperature t a float or a floating-point tensor; a tensor has one entry, or one
    for each batch row.
    """
    *batch, n = float_tensor("keys", keys).shape
    k = count(k, n, batch)
    return keys, k, temperature(t, batch), largest_count(k, n, k_max)


def count(k: Any, n: int, batch: Sequence[int]) -> int | Tensor:
    """Check a subset size: an int, or an integer tensor with one entry for each row, between 0 and n."""
    if not isinstance(k, Tensor):
        k = whole_number("k", k)
        if not 0 <= k <= n:
            raise InvalidValueError(f"k must {_SIZES.format(n)}, but got {k}: choose a size within that range")
        return k
    k = _one_for_each_row("k", "an int", _integers("k", "an int or an integer tensor", k), batch)
    bad = (k < 0) | (k > n)
    if holds(bad):
        raise _bad_entry("k", _SIZES.format(n), bad, k, "clamp it to that range")
    return k


def _integers(name: str, kind: str, value: Any) -> Tensor:
    """Check an integer tensor and convert it to int64."""
    if not isinstance(value, Tensor) or value.dtype == torch.bool or value.is_floating_point() or value.is_complex():
        got = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise InvalidTypeError(f"{name} must be {kind}, but got {got}: convert it with .long()")
    return value.long()


def _one_for_each_row(name: str, kind: str, value: Tensor, batch: Sequence[int]) -> Tensor:
    """Check that a tensor has one entry, or one for each batch row."""
    if value.shape not in (torch.Size(batch), torch.Size()):
        raise InvalidValueError(
            f"{name} must be {kind} or have one entry for each row, shape {tuple(batch)}, but got shape "
            f"{tuple(value.shape)}: reshape or expand it to the batch shape of the keys"
        )
    return value


def largest_count(k: int | Tensor, n: int, k_max: int | None = None) -> int:
    """The largest of checked subset sizes; where it cannot be read without waiting, `k_max`, or n."""
    if isinstance(k, int):
        return k
    if k_max is not None:
        k_max = whole_number("k_max", k_max, least=0, most=n)
    if not k.is_cpu or hidden(k):
        return n if k_max is None else k_max
    largest = int(k.max()) if k.numel() else 0
    if k_max is not None and k_max < largest:
        raise InvalidValueError(f"k_max must be at least the largest k, {largest}, but got {k_max}: pass that or more")
    return largest if k_max is None else k_max


def items(index: Any, n: int, shape: Sequence[int]) -> Tensor:
    """Check indices of items, -1 for none. Where values cannot be read, a bad index becomes -1."""
    index = _integers("index", "an integer tensor", index)
    if index.shape != torch.Size(shape):
        raise InvalidValueError(
            f"index must have one item for each of the k vectors, shape {tuple(shape)}, but got shape "
            f"{tuple(index.shape)}: pad it with -1 where a row has fewer"
        )
    bad = (index < -1) | (index >= n)
    if holds(bad):
        must = f"lie between 0 and n - 1 = {n - 1}, or be -1 for none"
        raise _bad_entry("index", must, bad, index, "correct the code that computes it")
    return index.masked_fill(bad, -1)


def relaxation(value: Any) -> Any:
    """Check a relaxation: any callable."""
    example = (
        f"khot.{value}" if isinstance(value, str) and value in RELAXATIONS else "khot.successive_softmax, for example"
    )
    return function("relaxation", value, "of (keys, k, temperature)", example)


def generator(value: Any) -> torch.Generator | None:
    """Check a source of random numbers; None is torch's default generator."""
    if value is not None and not isinstance(value, torch.Generator):
        raise InvalidTypeError(
            f"generator must be a torch.Generator, but got {value!r}: for example, pass torch.Generator()"
        )
    return value


def whole_number(
    name: str, value: Any, least: int | None = None, most: int | None = None, hint: str = "pass a smaller number"
) -> int:
    """Check an int between `least` and `most`, which the `hint` is about; a bool is refused."""
    if type(value) is not int and not is_integer(value):
        raise InvalidTypeError(
            f"{name} must be an int, but got {value!r} of type {type(value).__name__}: pass a whole number"
        )
    if least is not None and value < least:
        raise InvalidValueError(f"{name} must be at least {least}, but got {value}: pass a larger number")
    if most is not None and value > most:
        raise InvalidValueError(f"{name} must be at most {most}, but got {value}: {hint}")
    return int(value)


def temperature(value: Any, batch: Sequence[int]) -> float | Tensor:
    """Check a temperature: a positive finite number, or a floating-point tensor with one entry for each row."""
    if not isinstance(value, Tensor):
        return positive("temperature", value)
    if not value.is_floating_point():
        raise InvalidTypeError(
            f"temperature must be a floating-point tensor, but got {value.dtype}: convert it with .float()"
        )
    value = _one_for_each_row("temperature", "a number", value, batch)
    bad = ~((value > 0) & (value < math.inf))
    if holds(bad):
        raise _bad_entry("temperature", "be positive and finite", bad, value, "use hard_topk for the limit at 0")
    return value


def shape(name: str, value: Any) -> tuple[int, ...]:
    """Check a shape: a non-negative int, or a sequence of them."""
    sizes = tuple(value) if isinstance(value, Sequence) else (value,)
    for size in sizes:
        if not is_integer(size) or size < 0:
            raise InvalidValueError(
                f"{name} must hold non-negative ints, but got {value!r}: pass a shape such as (1000,)"
            )
    return tuple(map(int, sizes))


def positive(name: str, value: Any) -> float:
    """Check a positive finite number."""
    if type(value) is not float and (not isinstance(value, numbers.Real) or isinstance(value, bool)):
        raise InvalidTypeError(
            f"{name} must be a number, but got {value!r} of type {type(value).__name__}: pass a positive number"
        )
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not 0 < value < math.inf:
        raise InvalidValueError(f"{name} must be positive and finite, but got {value}: pass a positive number")
    return value


def not_negative(name: str, value: Any) -> float:
    """Check a finite number that is at least 0."""
    return 0.0 if isinstance(value, numbers.Real) and value == 0 and value is not False else positive(name, value)


def below_one(name: str, value: float, hint: str) -> float:
    """Check a number below 1."""
    if not value < 1:
        raise InvalidValueError(f"{name} must lie below 1, but got {value}: {hint}")
    return value


def flag(name: str, value: Any) -> bool:
    """Check a flag."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidTypeError(f"{name} must be a bool, but got {value!r}: pass True or False")
    return bool(value)


def function(name: str, value: Any, signature: str, example: str = "such a function") -> Any:
    """Check a callable."""
    if not callable(value):
        raise InvalidTypeError(f"{name} must be a function {signature}, but got {value!r}: pass {example}")
    return value


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Check one of several words."""
    if not isinstance(value, str) or value not in options:
        raise InvalidValueError(f"{name} must be one of {', '.join(options)}, but got {value!r}: choose one of them")
    return value


def instance(name: str, value: Any, kind: type) -> Any:
    """Check an object of a given class."""
    if not isinstance(value, kind):
        raise InvalidTypeError(
            f"{name} must be a {kind.__module__}.{kind.__name__}, but got {value!r} of type {type(value).__name__}: "
            "pass an instance of that class"
        )
    return value
