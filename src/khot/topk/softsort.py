"""SoftSort: a relaxed permutation from the distances of all keys to the j-th largest one."""

from torch import Tensor

from khot.topk._rows import ABSENT, finish_vectors, prepare
from khot.topk._traits import promises


@promises(smooth_at_ties=False)
def softsort(keys: Tensor, k: int | Tensor, temperature: float | Tensor, *, ordered: bool = False) -> Tensor:
    """Relaxed top k: the sum of the first k rows of SoftSort's relaxed permutation.

    Row j is ``softmax(-|s_j - keys| / temperature)``, where s_j is the j-th largest key.

    Parameters
    ----------
    keys : Tensor, shape (..., n)
        Scores; -inf marks an absent item.
    k : int or integer Tensor of shape (...)
        Size of the subset, 0 <= k <= n.
    temperature : float or Tensor of shape (...)
        Positive; as a tensor it can have a gradient.
    ordered : bool
        Whether to return the k rows instead of their sum.

    Returns
    -------
    Tensor, shape (..., n), or (..., max k, n) if `ordered`
        In the dtype of the keys; sums to k (each vector to 1). An entry of the sum can exceed 1. A row with fewer than
        k present items is exactly 1 at each of them, with zero gradient.
        On a device other than the CPU and in traced code, where reading a tensor k would wait, n stands in for max k,
        also in the cost: an int k is cheaper there.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf keys, a bad k, a temperature that is not positive and finite, wrong shapes.

    Examples
    --------
    >>> import torch
    >>> softsort(torch.tensor([1.0, 3.0, 2.0, 0.5]), 2, 0.5)
    tensor([0.1183, 0.9643, 0.8739, 0.0435])

    Notes
    -----
    Computed in float64: a float32 result is within max(2e-6, 4u range/temperature) of the exact one, u = 6e-8, range
    the largest minus the smallest present key of the row. Cost O(n log n + k n). Where keys are exactly equal, the j-th
    largest is not differentiable; its gradient goes to the first of them.

    References
    ----------
    Prillo & Eisenschlos, "SoftSort: a continuous relaxation for the argsort operator", ICML 2020.
    """
    rows = prepare(keys, k, temperature)
    x = rows.scaled(origin=rows.largest())
    largest = x.masked_fill(~rows.present, ABSENT).sort(dim=-1, descending=True, stable=True).values[..., : rows.steps]
    return finish_vectors(-(largest.unsqueeze(-1) - x.unsqueeze(-2)).abs(), rows, ordered)
