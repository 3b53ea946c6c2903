"""The successive softmax as an operator that autograd, `torch.func` and `torch.compile` understand.

Forward and backward are `torch.library` operators, opaque to tracing; two `autograd.Function`s with their own vmap rule
stand around them. The backward is a Function of its own, whose backward raises: marking it once-differentiable would
yield silent zeros when the cotangent carries no gradient.
"""

import math
from typing import Any, NoReturn

import torch
from torch import Tensor

from khot import _checks
from khot.errors import NotAvailableError
from khot.topk import _successive_rows
from khot.topk._successive_modes import table_shape


def successive(keys: Tensor, k: Tensor, temperature: Tensor, steps: int, mode: int, at: Tensor | None = None) -> Tensor:
    """What `mode` asks for, of checked keys (..., n) with k and temperature (...), and items `at` (..., steps)."""
    *batch, n = keys.shape
    count = math.prod(batch)
    items = k.new_empty(count, 0) if at is None else at.reshape(count, steps)
    hidden = _checks.hidden(keys, temperature, k, items)
    keep = hidden or (torch.is_grad_enabled() and (keys.requires_grad or temperature.requires_grad))
    arguments = keys.reshape(count, n), k.reshape(count), temperature.reshape(count), items, steps, mode, keep
    if not keep:
        result = _operator("forward")(*arguments)[0]
    elif hidden:
        result = _Forward.apply(*arguments)[0]  # pyright: ignore[reportOptionalSubscript]
    else:
        result: Any = _EagerForward.apply(*arguments)
    return result.reshape(*batch, *result.shape[1:])


def _operator(name: str) -> Any:
    """The function itself where nobody looks on, which saves the way through torch's dispatcher."""
    plain = not _checks.traced()
    return getattr(_successive_rows, name) if plain else {"forward": _forward, "backward": _backward}[name]


@torch.library.custom_op("khot::successive_forward", mutates_args=())
def _forward(
    keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int, keep: bool
) -> tuple[Tensor, Tensor]:
    return _successive_rows.forward(keys, k, temperature, at, steps, mode, keep)


@_forward.register_fake
def _(
    keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int, keep: bool
) -> tuple[Tensor, Tensor]:
    state = keys.new_empty(keys.shape[0], _successive_rows.state_size(keys, steps, keep), dtype=torch.float64)
    return keys.new_empty(table_shape(keys, steps, mode)), state


@torch.library.custom_op("khot::successive_backward", mutates_args=())
def _backward(
    keys: Tensor,
    k: Tensor,
    temperature: Tensor,
    at: Tensor,
    state: Tensor,
    grad: Tensor,
    steps: int,
    mode: int,
    in_temperature: bool,
) -> tuple[Tensor, Tensor]:
    return _successive_rows.backward(keys, k, temperature, at, state, grad, steps, mode, in_temperature)


@_backward.register_fake
def _(
    keys: Tensor,
    k: Tensor,
    temperature: Tensor,
    at: Tensor,
    state: Tensor,
    grad: Tensor,
    steps: int,
    mode: int,
    in_temperature: bool,
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(keys), torch.empty_like(temperature)


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int, keep: bool
    ) -> tuple[Tensor, Tensor]:
        return _forward(keys, k, temperature, at, steps, mode, keep)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.steps, ctx.mode, _ = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if grad is None:
            return (None,) * 7
        arguments = *ctx.saved_tensors, grad, ctx.steps, ctx.mode, ctx.needs_input_grad[2]
        grad_keys, grad_temperature = _Backward.apply(*arguments)  # pyright: ignore[reportGeneralTypeIssues]
        return grad_keys, None, grad_temperature, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, int]]:
        return _with_mapped_rows(_Forward, info.batch_size, in_dims, args), (0, 0)


class _EagerForward(torch.autograd.Function):
    """`_Forward` where no transform is at work: torch spends a tenth of a millisecond on `setup_context`."""

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int, keep: bool
    ) -> Tensor:
        result, state = _operator("forward")(keys, k, temperature, at, steps, mode, keep)
        ctx.save_for_backward(keys, k, temperature, at, state)
        ctx.steps, ctx.mode = steps, mode
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        twice = torch.is_grad_enabled()  # the gradient is to be differentiated again: that must be refused
        function: Any = _Backward.apply if twice else _operator("backward")
        grad_keys, grad_temperature = function(*ctx.saved_tensors, grad, ctx.steps, ctx.mode, ctx.needs_input_grad[2])
        return grad_keys, None, grad_temperature, None, None, None, None


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        keys: Tensor,
        k: Tensor,
        temperature: Tensor,
        at: Tensor,
        state: Tensor,
        grad: Tensor,
        steps: int,
        mode: int,
        in_temperature: bool,
    ) -> tuple[Tensor, Tensor]:
        return _backward(keys, k, temperature, at, state, grad, steps, mode, in_temperature)

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
    return tuple(result.reshape(size, rows, *result.shape[1:]) for result in results)


def _lift(arg: Tensor, dim: int | None, size: int) -> Tensor:
    return arg.expand(size, *arg.shape) if dim is None else arg.movedim(dim, 0)
