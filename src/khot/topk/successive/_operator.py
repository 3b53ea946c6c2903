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
from khot.topk._arrays import flat
from khot.topk._rows import check, widen
from khot.topk.successive import _dispatch
from khot.topk.successive._modes import table_shape


def successive(
    keys: Tensor,
    k: int | Tensor,
    temperature: float | Tensor,
    mode: int,
    index: Tensor | None = None,
    k_max: int | None = None,
) -> Tensor:
    """What `mode` asks for, of keys (..., n) and of items `index` (..., max k), all of them checked here."""
    keys = _checks.float_tensor("keys", keys)
    *batch, n = keys.shape
    k, temperature = _checks.count(k, n, batch), _checks.temperature(temperature, batch)
    steps = _checks.largest_count(k, n, k_max)
    if index is not None:
        index = _checks.items(index, n, (*batch, steps)).reshape(math.prod(batch), steps)
    eager = not _checks.hidden(keys, k, temperature, index) and not _checks.traced()
    k, temperature = flat(k, batch), flat(temperature, batch)
    run = _eager if eager else _traced
    result = run(keys if keys.ndim == 2 else keys.reshape(math.prod(batch), n), k, temperature, index, steps, mode)
    return result if keys.ndim == 2 else result.reshape(*batch, *result.shape[1:])


def _eager(keys: Tensor, k: Any, temperature: Any, at: Tensor | None, steps: int, mode: int) -> Tensor:
    """Where nobody looks on, without the way through torch's dispatcher. Bad keys are found on the way."""
    moving = isinstance(temperature, Tensor)
    temperature = widen(temperature.to(keys.device)) if moving else temperature
    if torch.is_grad_enabled() and (keys.requires_grad or (moving and temperature.requires_grad)):
        return _apply(keys, k, temperature, at, steps, mode)
    result, _, bad = _dispatch.forward(keys, k, temperature, at, steps, mode, False)
    return result if not bad else _checks.logits(keys, "keys")


def _traced(keys: Tensor, k: Any, temperature: Any, at: Tensor | None, steps: int, mode: int) -> Tensor:
    """As operators that torch can see through."""
    count = keys.shape[0]
    keys, k, temperature, steps = check(keys, k, temperature)
    items = k.new_empty(count, 0) if at is None else at
    return _Forward.apply(keys, k, temperature, items, steps, mode)[0]  # pyright: ignore[reportOptionalSubscript]


@torch.library.custom_op("khot::successive_forward", mutates_args=())
def _forward(keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int) -> tuple[Tensor, Tensor]:
    return _dispatch.forward(keys, k, temperature, at, steps, mode, True)[:2]


@_forward.register_fake
def _(keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int) -> tuple[Tensor, Tensor]:
    return keys.new_empty(table_shape(keys.shape, steps, mode)), _dispatch.empty_state(keys, steps)


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
    return _dispatch.backward(keys, k, temperature, at, state, grad, steps, mode, in_temperature)


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
        keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int
    ) -> tuple[Tensor, Tensor]:
        return _forward(keys, k, temperature, at, steps, mode)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.steps, ctx.mode = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if grad is None:
            return (None,) * 6
        arguments = *ctx.saved_tensors, grad, ctx.steps, ctx.mode, ctx.needs_input_grad[2]
        grad_keys, grad_temperature = _Backward.apply(*arguments)  # pyright: ignore[reportGeneralTypeIssues]
        return grad_keys, None, grad_temperature, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, int]]:
        return _with_mapped_rows(_Forward, info.batch_size, in_dims, args), (0, 0)


class _EagerForward(torch.autograd.Function):
    """`_Forward` where no transform is at work: torch spends a tenth of a millisecond on `setup_context`."""

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, keys: Tensor, k: Any, temperature: Any, at: Tensor | None, steps: int, mode: int
    ) -> Tensor:
        result, state, bad = _dispatch.forward(keys, k, temperature, at, steps, mode, True)
        if bad:
            _checks.logits(keys, "keys")
        ctx.save_for_backward(keys, *(x if isinstance(x, Tensor) else None for x in (k, temperature, at)), state)
        ctx.numbers = _number(k), _number(temperature), steps, mode
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        keys, k, temperature, at, state = ctx.saved_tensors
        same_k, same_temperature, steps, mode = ctx.numbers
        k, temperature = same_k if k is None else k, same_temperature if temperature is None else temperature
        function: Any = _dispatch.backward
        if torch.is_grad_enabled():  # the gradient is to be differentiated again: that must be refused
            function = _Backward.apply
            k, at = _dispatch.tensors(k, at, keys)
            temperature = torch.as_tensor(temperature, dtype=torch.float64).expand(len(keys))
        in_temperature = ctx.needs_input_grad[2]
        grads = function(keys, k, temperature, at, state, grad, steps, mode, in_temperature)
        return grads[0], None, grads[1] if in_temperature else None, None, None, None


_without_transforms: Any = super(torch.autograd.Function, _EagerForward)
_apply = _without_transforms.apply  # torch spends as much again on the search for them


def _number(x: Any) -> Any:
    return None if isinstance(x, Tensor) else x


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
