"""The successive softmax of a table of rows: compiled on the CPU, in torch operations elsewhere or without Numba."""

from types import ModuleType

import torch
from torch import Tensor

from khot import kernels
from khot.topk import _successive_torch
from khot.topk._successive_modes import exact_table, narrow, table_shape


def kernels_for(device: torch.device) -> ModuleType | None:
    """The compiled loops, if there are any for the device."""
    if device.type != "cpu" or not kernels.AVAILABLE:
        return None
    from khot.kernels import successive

    return successive


def forward(
    keys: Tensor, k: Tensor, temperature: Tensor, at: Tensor, steps: int, mode: int, keep: bool
) -> tuple[Tensor, Tensor]:
    """The result, of `table_shape`, in the dtype of the keys, and, if asked for, a state (rows, .) for `backward`.

    The keys (rows, n) may hold -inf, k is (rows,) int64, the temperature (rows,) float64; `at` (rows, steps) int64
    holds the items of single entries, or is (rows, 0).
    """
    loops = kernels_for(keys.device)
    state = keys.new_empty(keys.shape[0], state_size(keys, steps, keep), dtype=torch.float64)
    if loops is None:
        out = _successive_torch.forward(keys, k, temperature, at, steps, mode)
        bad = ~((keys < torch.inf).all(-1) & (temperature > 0))
        out = out.masked_fill(bad.reshape(-1, *[1] * (out.ndim - 1)), torch.nan)
        short = (keys != -torch.inf).sum(-1) < k
    else:
        wide = _wide(keys)
        out = wide.new_empty(table_shape(keys, steps, mode))
        table = out.unsqueeze(1) if out.ndim == 2 else out
        arrays = (x.contiguous().numpy() for x in (wide, k, temperature.detach()))
        paths = loops.forward(*arrays, mode, at.contiguous().numpy(), table.numpy(), state.numpy())
        if loops.SHORT not in paths:
            return out.to(keys.dtype), state
        short = torch.from_numpy(paths == loops.SHORT)
    if short.any():
        out[short] = exact_table(keys[short], k[short], at[short], steps, mode).to(out.dtype)
    return out.to(keys.dtype), state


def backward(
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
    """Gradients in the keys, saturated at the largest number of their dtype, and, if asked for, in the temperature."""
    loops = kernels_for(keys.device)
    if loops is None:
        grad_keys, grad_temperature = _successive_torch.backward(keys, k, temperature, at, grad, steps, mode)
        return narrow(grad_keys, keys.dtype), grad_temperature
    wide_grad = _wide(grad).to(_wide(keys).dtype)
    table = wide_grad.unsqueeze(1) if wide_grad.ndim == 2 else wide_grad
    arrays = (x.contiguous().numpy() for x in (_wide(keys), k, temperature.detach()))
    more = (x.contiguous().numpy() for x in (at, table, state))
    results = loops.backward(*arrays, mode, *more, in_temperature)
    grad_keys, grad_temperature = (torch.from_numpy(x) for x in results)
    return grad_keys if grad_keys.dtype == keys.dtype else narrow(grad_keys, keys.dtype), grad_temperature


def state_size(keys: Tensor, steps: int, keep: bool) -> int:
    """Numbers a row that `forward` leaves for `backward`."""
    loops = kernels_for(keys.device)
    return loops.room(keys.shape[-1], steps) if keep and loops is not None else 0


def _wide(x: Tensor) -> Tensor:
    return x.detach().to(torch.promote_types(x.dtype, torch.float32))
