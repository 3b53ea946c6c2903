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
    """Rows of all processes, one process after the other, with a gradient in those of each.

    For losses that compare the rows of a batch with each other. As the gradients of the processes are averaged, both of
    these are right: every process takes the mean loss of its own rows against all, or the loss of all rows.

    Parameters
    ----------
    tensor : Tensor
        This process's rows (b, ...), as many as in every other.

    Returns
    -------
    Tensor
        The rows (processes * b, ...) in the order of the batch; with a single process, `tensor` itself.

    Examples
    --------
    >>> import torch
    >>> gather_with_grad(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
    return tensor if processes() == 1 else _Gather.apply(tensor)  # pyright: ignore[reportReturnType]


def processes() -> int:
    """How many there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def own_share(rows: Tensor) -> Tensor:
    """The part of this process in the rows of all."""
    return rows.chunk(processes())[dist.get_rank()] if processes() > 1 else rows


def leave_group() -> None:
    """End the process group and its threads, which must not outlive the interpreter."""
    gc.collect()  # models that are garbage hold the group
    if dist.is_initialized():
        dist.destroy_process_group()


def agree(fabric: Any, loss: Tensor, stop: bool) -> tuple[float, bool]:
    """The mean loss of all processes, and whether any of them was asked to stop."""
    if fabric.world_size == 1:
        return loss.item(), stop
    told = torch.stack([loss.detach().float(), loss.new_tensor(float(stop), dtype=torch.float32)])
    mean, stops = fabric.all_reduce(told, reduce_op="mean").tolist()
    return mean, stops > 0
