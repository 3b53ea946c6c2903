"""The successive softmax as an operator that autograd, `torch.func` and `torch.compile` understand.

Forward and backward are `torch.library` operators, opaque to tracing; two `autograd.Function`s with their own vmap rule
stand around them. The backward is a Function of its own, whose backward raises: marking it once-differentiable would
yield silent zeros when the cotangent carries no gradient.
"""

import math
from typing import Any, NoReturn

import torch
from torch import Tensor

from khot.errors import NotAvailableError
from khot.topk import _successive_loop
from khot.topk._rows import Rows

_TOLERANCE_32 = 1e-6  # of the result, before it is rounded to float32 or less
_TOLERANCE_64 = 5e-13


def successive(rows: Rows, ordered: bool) -> Tensor:
    """Relaxed one-hot vectors (..., steps, n), or their sum (..., n), in float64; short rows come back as zeros."""
    *batch, n = rows.keys.shape
    count = math.prod(batch)
    result: Any = _Forward.apply(
        rows.keys.reshape(count, n),
        (rows.present | rows.short.unsqueeze(-1)).reshape(count, n),
        torch.where(rows.short, 0, rows.k).reshape(count),
        rows.temperature.reshape(count),
        rows.steps,
        ordered,
        _TOLERANCE_64 if rows.original.dtype == torch.float64 else _TOLERANCE_32,
    )
    return result.reshape(*batch, *result.shape[1:])


@torch.library.custom_op("khot::successive_forward", mutates_args=())
def _forward(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, ordered: bool, tolerance: float
) -> Tensor:
    return _successive_loop.forward(keys, present, k, temperature, steps, ordered, tolerance)


@_forward.register_fake
def _(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, ordered: bool, tolerance: float
) -> Tensor:
    rows, n = keys.shape
    return keys.new_empty(rows, steps, n) if ordered else keys.new_empty(rows, n)


@torch.library.custom_op("khot::successive_backward", mutates_args=())
def _backward(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, grad: Tensor, steps: int, ordered: bool
) -> tuple[Tensor, Tensor]:
    return _successive_loop.backward(keys, present, k, temperature, grad, steps, ordered)


@_backward.register_fake
def _(
    keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, grad: Tensor, steps: int, ordered: bool
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(keys), torch.empty_like(temperature)


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, steps: int, ordered: bool, tolerance: float
    ) -> Tensor:
        return _forward(keys, present, k, temperature, steps, ordered, tolerance)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.steps, ctx.ordered, _ = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad_keys, grad_temperature = _Backward.apply(*ctx.saved_tensors, grad, ctx.steps, ctx.ordered)  # pyright: ignore[reportGeneralTypeIssues]
        return grad_keys, None, None, grad_temperature, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        return _with_mapped_rows(_Forward, info.batch_size, in_dims, args), 0


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        keys: Tensor, present: Tensor, k: Tensor, temperature: Tensor, grad: Tensor, steps: int, ordered: bool
    ) -> tuple[Tensor, Tensor]:
        return _backward(keys, present, k, temperature, grad, steps, ordered)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise NotAvailableError(
            "successive_softmax cannot be differentiated twice: use softsort, neuralsort or capped_simplex where "
            "second derivatives are needed"
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, int]]:
        return _with_mapped_rows(_Backward, info.batch_size, in_dims, args), (0, 0)


def _with_mapped_rows(function: Any, size: int, in_dims: tuple[int | None, ...], args: tuple[Any, ...]) -> Any:
    """Apply a Function of rows to rows with one more axis, of length `size`, which comes first in the results."""
    lifted = [_lift(arg, dim, size) if isinstance(arg, Tensor) else arg for arg, dim in zip(args, in_dims, strict=True)]
    rows = lifted[0].shape[1]
    results = function.apply(
        *[arg.reshape(size * rows, *arg.shape[2:]) if isinstance(arg, Tensor) else arg for arg in lifted]
    )
    if isinstance(results, Tensor):
        return results.reshape(size, rows, *results.shape[1:])
    return tuple(result.reshape(size, rows, *result.shape[1:]) for result in results)


def _lift(arg: Tensor, dim: int | None, size: int) -> Tensor:
    return arg.expand(size, *arg.shape) if dim is None else arg.movedim(dim, 0)
