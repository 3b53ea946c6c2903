"""The exact top k, to which every relaxation converges as the temperature goes to 0."""

import torch
from torch import Tensor

from khot import _checks
from khot.topk._arrays import per_row


def hard_topk(keys: Tensor, k: int | Tensor, *, ordered: bool = False) -> Tensor:
    """Exact top k: 1 at the k largest keys of each row, 0 at the others.

    Parameters
    ----------
    keys : Tensor, shape (..., n)
        Scores; -inf marks an absent item, which is never chosen. Of equal keys the one with the lower index wins.
    k : int or integer Tensor of shape (...)
        Size of the subset, 0 <= k <= n. A row with fewer present items yields all of them.
    ordered : bool
        Return the k one-hot vectors, the largest key first, instead of their sum.

    Returns
    -------
    Tensor, shape (..., n), or (..., max k, n) if `ordered`
        In the dtype of the keys, without a gradient. Vectors beyond a row's own k, or beyond its present items, are 0.
        On a device other than the CPU and in traced code, where reading a tensor k would wait, n stands in for max k.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf keys, k outside 0..n or not an integer, wrong shapes.

    Examples
    --------
    >>> import torch
    >>> hard_topk(torch.tensor([0.5, 3.0, 3.0, -1.0]), 2)
    tensor([0., 1., 1., 0.])

    See Also
    --------
    topk_indices : the same choice as indices.
    """
    keys, k, steps = _checked(keys, k)
    if ordered:
        return one_hots(keys, k, steps)
    order, chosen = _ranked(keys, k, steps)
    return _or_nan(torch.zeros_like(keys.detach()).scatter(-1, order, chosen.to(keys.dtype)), keys)


def topk_indices(keys: Tensor, k: int | Tensor) -> Tensor:
    """Indices of the k largest keys of each row, the largest key first.

    Parameters
    ----------
    keys, k
        As for `hard_topk`.

    Returns
    -------
    Tensor, shape (..., max k), int64
        Padded with -1 where fewer than `max k` items are chosen; max k as for `hard_topk`.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As `hard_topk` does.

    Examples
    --------
    >>> import torch
    >>> topk_indices(torch.tensor([[0.5, 3.0, 3.0], [1.0, -torch.inf, -torch.inf]]), 2)
    tensor([[ 1,  2],
            [ 0, -1]])
    """
    return _indices(*_checked(keys, k))


def one_hots(keys: Tensor, k: Tensor, steps: int) -> Tensor:
    """One-hot vectors (..., steps, n) of the k largest keys of each row; the arguments are checked already."""
    indices = _indices(keys, k, steps).unsqueeze(-1)
    return _or_nan((indices == torch.arange(keys.shape[-1], device=keys.device)).to(keys.dtype), keys)


def _or_nan(result: Tensor, keys: Tensor) -> Tensor:
    """Set rows with NaN or +inf to NaN where their values cannot be read and so raise no error."""
    if not _checks.hidden(keys):
        return result
    sound = _checks.usable(keys.detach())
    return result.masked_fill(~sound.reshape(*sound.shape, *[1] * (result.ndim - sound.ndim)), torch.nan)


def _indices(keys: Tensor, k: Tensor, steps: int) -> Tensor:
    order, chosen = _ranked(keys, k, steps)
    return order.masked_fill(~chosen, -1)


def _ranked(keys: Tensor, k: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Indices of the `steps` largest keys, the largest first, and whether they are among the k of their row."""
    values, order = keys.detach().sort(dim=-1, descending=True, stable=True)
    chosen = (torch.arange(steps, device=keys.device) < k.unsqueeze(-1)) & (values[..., :steps] > -torch.inf)
    return order[..., :steps], chosen


def _checked(keys: Tensor, k: int | Tensor) -> tuple[Tensor, Tensor, int]:
    *batch, n = _checks.logits(keys, "keys").shape
    k = _checks.count(k, n, batch)
    return keys, per_row(k, keys), _checks.largest_count(k, n)
