"""The successive softmax as an operator for autograd, `torch.func` and `torch.compile`.

Forward and backward are `torch.library` operators, which are opaque to tracing, inside two `autograd.Function`s with
their own vmap rule. The backward is a Function of its own whose backward raises an error; marking it as
once-differentiable would give silent zeros when the cotangent has no gradient.
"""

import math
from typing import Any, NoReturn

import torch
from torch import Tensor

from khot import _checks
from khot.errors import NotAvailableError
from khot.topk._arrays import flat, per_row
from khot.topk._rows import columns, mapped_first
from khot.topk.successive import _dispatch
from khot.topk.successive._compiled.constants import ENTRIES
from khot.topk.successive._dispatch import Problem

_PROBLEM = "Tensor keys, Tensor k, Tensor temperature, Tensor? at, SymInt steps, int mode"
_ARGUMENTS = len(Problem._fields)


def successive(
    keys: Tensor,
    k: int | Tensor,
    temperature: float | Tensor,
    mode: int,
    index: Tensor | None = None,
    k_max: int | None = None,
) -> Tensor:
    """Check the arguments and compute the result of a `mode`, for keys (..., n) and perhaps items (..., max k)."""
    keys, k, temperature, steps = _checks.problem(keys, k, temperature, k_max)
    *batch, n = keys.shape
    count = math.prod(batch)
    if mode == ENTRIES:
        index = _checks.items(index, n, (*batch, steps)).reshape(count, steps)
    observed = _checks.observed(keys, k, temperature, index)
    if observed:
        k, temperature = (x.reshape(count) for x in columns(_checks.logits(keys, "keys"), k, temperature))
    else:
        k, temperature = flat(k, keys), flat(temperature, keys)
    problem = Problem(keys if keys.ndim == 2 else keys.reshape(count, n), k, temperature, index, steps, mode)
    if observed:
        result = _Forward.apply(*problem)[0]  # pyright: ignore[reportOptionalSubscript]
    elif torch.is_grad_enabled() and (keys.requires_grad or getattr(temperature, "requires_grad", False)):
        result = _apply(*problem)
    else:
        result, _, bad = _dispatch.forward(problem, False)
        if bad:
            _checks.logits(keys, "keys")
    return result if keys.ndim == 2 else result.reshape(*batch, *result.shape[1:])


@torch.library.custom_op("khot::successive_forward", mutates_args=(), schema=f"({_PROBLEM}) -> (Tensor, Tensor)")
def _forward(*problem: Any) -> tuple[Tensor, Tensor]:
    return _dispatch.forward(Problem(*problem), True)[:2]


@_forward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor]:
    problem = Problem(*arguments)
    return problem.keys.new_empty(_dispatch.table_shape(problem)), _dispatch.empty_state(problem.keys, problem.steps)


@torch.library.custom_op(
    "khot::successive_backward",
    mutates_args=(),
    schema=f"({_PROBLEM}, Tensor state, Tensor grad, bool in_temperature) -> (Tensor, Tensor)",
)
def _backward(*arguments: Any) -> tuple[Tensor, Tensor]:
    return _dispatch.backward(Problem(*arguments[:_ARGUMENTS]), *arguments[_ARGUMENTS:])


@_backward.register_fake
def _(keys: Tensor, k: Tensor, temperature: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(keys), torch.empty_like(temperature)


class _OfRows(torch.autograd.Function):
    """Function of tensors (rows, .) and numbers, which returns two tensors; vmap gives it more rows."""

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        lifted = mapped_first(info.batch_size, in_dims, args)
        results = cls.apply(*[arg.flatten(0, 1) if isinstance(arg, Tensor) else arg for arg in lifted])
        rows = lifted[0].shape[:2]
        return tuple(result.reshape(*rows, *result.shape[1:]) for result in results), (0, 0)


class _Forward(_OfRows):
    @staticmethod
    def forward(keys, k, temperature, at, steps, mode):  # torch.compile counts these names
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
            return (None,) * _ARGUMENTS
        *tensors, state = ctx.saved_tensors
        arguments = *tensors, ctx.steps, ctx.mode, state, grad, ctx.needs_input_grad[2]
        grad_keys, grad_temperature = _Backward.apply(*arguments)  # pyright: ignore[reportGeneralTypeIssues]
        return grad_keys, None, grad_temperature, None, None, None


class _EagerForward(torch.autograd.Function):
    """`_Forward` for calls that torch does not observe; it also finds bad keys.

    Without the dispatcher and `setup_context` it takes a tenth of a millisecond less.
    """

    @staticmethod
    def forward(ctx: Any, keys: Tensor, *rest: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        result, state, bad = _dispatch.forward(Problem(keys, *rest), True)
        if bad:
            _checks.logits(keys, "keys")
        ctx.rest = rest
        ctx.save_for_backward(keys, state, *[x for x in rest if isinstance(x, Tensor)])  # notices if they change
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (keys, state, *_), in_temperature = ctx.saved_tensors, ctx.needs_input_grad[2]
        problem = Problem(keys, *ctx.rest)
        if torch.is_grad_enabled():  # for second derivatives, which must raise an error
            k, temperature = per_row(problem.k, keys), per_row(problem.temperature, keys)
            columns = problem._replace(k=k, temperature=temperature)
            grads: Any = _Backward.apply(*columns, state, grad, in_temperature)
        else:
            grads = _dispatch.backward(problem, state, grad, in_temperature)
        return grads[0], None, grads[1] if in_temperature else None, None, None, None


_without_transforms: Any = super(torch.autograd.Function, _EagerForward)
_apply = _without_transforms.apply  # the search for transforms would cost the same again


class _Backward(_OfRows):
    @staticmethod
    def forward(keys, k, temperature, at, steps, mode, state, grad, in_temperature):
        return _backward(keys, k, temperature, at, steps, mode, state, grad, in_temperature)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise NotAvailableError(
            "successive_softmax cannot be differentiated twice: use softsort, neuralsort or capped_simplex where "
            "second derivatives are needed"
        )
