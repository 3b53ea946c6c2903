"""NeuralSort: a relaxed permutation from the sums of absolute differences between keys."""

import torch
from torch import Tensor

from khot.topk._rows import Rows, finish_vectors, prepare
from khot.topk._traits import promises


@promises(error=lambda n, k, spread, temperature: n * max(2e-6, 24e-8 * spread / temperature))
def neuralsort(keys: Tensor, k: int | Tensor, temperature: float | Tensor, *, ordered: bool = False) -> Tensor:
    """Relaxed top k: the sum of the first k rows of NeuralSort's relaxed permutation.

    Row j is ``softmax(((m + 1 - 2j) keys - B) / temperature)``, where ``B_i = sum_l |keys_i - keys_l|`` and m is the
    number of present items.

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
    >>> neuralsort(torch.tensor([1.0, 3.0, 2.0, 0.5]), 2, 0.5)
    tensor([0.1062, 0.9865, 0.9020, 0.0053])

    Notes
    -----
    B is computed from one sort and running sums, so the cost is O(n log n + k n), without the n x n matrix of the
    textbook form. The logits grow with n, and so does the rounding error: a float32 result is within
    n max(2e-6, 4u range/temperature), where u = 6e-8 and range is the largest minus the smallest present key.

    References
    ----------
    Grover, Wang, Zweig & Ermon, "Stochastic optimization of sorting networks via continuous relaxations", ICLR 2019.
    """
    rows = prepare(keys, k, temperature)
    x, present = rows.scaled(origin=rows.largest()), rows.present.sum(-1, keepdim=True)
    position = torch.arange(1, rows.steps + 1, device=x.device).unsqueeze(-1)
    coefficient = present.unsqueeze(-1) + 1 - 2 * position
    logits = coefficient * x.unsqueeze(-2) - _distance_sums(rows, x, present).unsqueeze(-2)
    return finish_vectors(logits, rows, ordered)


def _distance_sums(rows: Rows, x: Tensor, present: Tensor) -> Tensor:
    """Sum over the present items l of |x_i - x_l|, for every i, in O(n log n).

    It is (number of smaller keys - number of larger keys) x_i + (sum of the larger) - (sum of the smaller). Equal keys
    count on neither side, so that equal items have equal gradients.
    """
    ascending = torch.where(rows.present, x, 1).sort(dim=-1).values  # x <= 0, so absent items come last
    ranks = torch.arange(x.shape[-1], device=x.device)
    totals = torch.where(ranks < present, ascending, 0).cumsum(-1)
    totals = torch.nn.functional.pad(totals, (1, 0))  # totals[i]: sum of the i smallest
    sorted_values, values = ascending.detach(), x.detach().contiguous()
    below = torch.searchsorted(sorted_values, values, side="left")
    up_to = torch.searchsorted(sorted_values, values, side="right")
    larger = totals.gather(-1, present) - totals.gather(-1, up_to)
    return (below - (present - up_to)) * x + larger - totals.gather(-1, below)
