"""Communication between the processes of a training."""

import gc
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        pieces = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(pieces, tensor.contiguous())
        return torch.cat(pieces)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


def gather_with_grad(tensor: Tensor) -> Tensor:
    """Concatenate the rows of all processes, with gradients in all of them.

    This is for losses that compare the rows of a batch with each other. Since the gradients of the processes are
    averaged, a process may return the mean loss of its own rows against all, or the loss of all rows.

    Parameters
    ----------
    tensor : Tensor
        Rows (b, ...) of this process, as many as in every other.

    Returns
    -------
    Tensor
        Rows (processes * b, ...) in the order of the batch; with a single process, `tensor` itself.

    Examples
    --------
    >>> import torch
    >>> gather_with_grad(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
    return tensor if processes() == 1 else _Gather.apply(tensor)  # pyright: ignore[reportReturnType]


def processes() -> int:
    """Number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def own_share(rows: Tensor) -> Tensor:
    """Share of this process in the rows of all."""
    return rows.chunk(processes())[dist.get_rank()] if processes() > 1 else rows


def leave_group() -> None:
    """End the process group and its threads, which must not outlive the interpreter."""
    gc.collect()  # models that are garbage hold the group
    if dist.is_initialized():
        dist.destroy_process_group()


def agree(fabric: Any, loss: Tensor, stop: bool) -> tuple[float, bool]:
    """Mean loss of all processes, and whether any of them was asked to stop."""
    if fabric.world_size == 1:
        return loss.item(), stop
    values = torch.stack([loss.detach().float(), loss.new_tensor(float(stop), dtype=torch.float32)])
    mean, stops = fabric.all_reduce(values, reduce_op="mean").tolist()
    return mean, stops > 0
