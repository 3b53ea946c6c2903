"""The paper's relaxation: k softmaxes in succession, each lowering the keys of what has been taken."""

from torch import Tensor

from khot.topk._traits import promises
from khot.topk.successive._compiled.constants import ENTRIES, SUM, VECTORS
from khot.topk.successive._operator import successive


def _error(n: int, k: int, spread: float, temperature: float) -> float:
    rounding = 48e-8 * (spread / temperature + k) if temperature >= 0.7 else 24e-8 * spread / temperature
    return max(2e-6, rounding)


@promises(keeps_order_from=1.0, differentiable_twice=False, error=_error)
def successive_softmax(
    keys: Tensor, k: int | Tensor, temperature: float | Tensor, *, ordered: bool = False, k_max: int | None = None
) -> Tensor:
    """Relaxed top k by k softmaxes in succession.

    With ``alpha = keys`` at first, k times: ``p = softmax(alpha / temperature)``, then ``alpha += log(1 - p)``.
    The vectors p are the relaxed ordered sample; their sum is the relaxed k-hot vector.

    Parameters
    ----------
    keys : Tensor, shape (..., n)
        Scores; -inf marks an absent item.
    k : int or integer Tensor of shape (...)
        Size of the subset, 0 <= k <= n.
    temperature : float or Tensor of shape (...)
        Positive; differentiable if it is a tensor.
    ordered : bool
        Return the k vectors p instead of their sum. The j-th singles out the j-th largest key only at low temperature:
        from temperature 1 up all k of them are largest at the first item.
    k_max : int, optional
        The largest k, if k is a tensor: by default it is read from it or, on a device other than the CPU, where reading
        would wait for the device, it is n.

    Returns
    -------
    Tensor, shape (..., n), or (..., max k, n) if `ordered`
        Non-negative, sums to k (each vector to 1). The sum keeps the order of the keys for temperature >= 1 (Theorem 1
        of the paper). It is *not* bounded by 1: keys [1, 2] with k = 2 at temperature 0.4 give [1.05, 0.95], and k = n
        does not give ones; `capped_simplex` is the bounded relaxation.
        A row with fewer than k present items is exactly 1 on each of them, with zero gradient.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For NaN or +inf keys, a bad k, a temperature that is not positive and finite, wrong shapes.
    NotAvailableError
        When it is differentiated twice.

    Examples
    --------
    >>> import torch
    >>> successive_softmax(torch.tensor([1.0, 3.0, 2.0, 0.5]), 2, 0.5)
    tensor([0.1348, 0.9899, 0.8249, 0.0505])
    >>> successive_softmax(torch.tensor([1.0, 2.0]), 2, 0.4)
    tensor([1.0529, 0.9471])

    Notes
    -----
    Accuracy of a float32 result, with u = 6e-8 and range the largest minus the smallest present key of the row:

    - temperature >= 0.7: within max(2e-6, 8u (range/temperature + k));
    - 0.05 <= temperature < 0.7 and range <= 50: within max(2e-6, 4u range/temperature), for any k;
    - elsewhere the recursion amplifies every rounding error without bound; the result is non-negative, sums to k and
      is never NaN.

    A float64 result is within 1e-12 in the first two cases, for a range up to 1e12. Gradients are never NaN,
    saturate where they overflow, and for temperature >= 0.05 and range <= 50 are within 1e-3 of the largest of their
    row, or 1e-10 of the cotangent where the whole gradient is smaller. Half-precision keys are computed in float32 or
    float64 and returned in their dtype.

    Cost O(n + k^2) in time and memory, not O(k n): only the 2k largest items go through the recursion one by one. All
    the others follow one smooth function of their key, which is computed at 4 or 8 nodes and interpolated; where that
    cannot be trusted, where k is more than n / 8, and in short rows, all items go one by one. On the CPU the loops are
    compiled by Numba at the first call, which takes a while, and kept on disk.

    References
    ----------
    Plötz & Roth, "Neural nearest neighbors networks", NeurIPS 2018; Xie & Ermon, 2019, Section 3.3.
    """
    return successive(keys, k, temperature, VECTORS if ordered else SUM, k_max=k_max)


def successive_softmax_at(
    keys: Tensor, k: int | Tensor, temperature: float | Tensor, index: Tensor, *, k_max: int | None = None
) -> Tensor:
    """Single entries of the k relaxed one-hot vectors, without the vectors.

    The j-th entry is that of the j-th vector p of ``successive_softmax(keys, k, temperature, ordered=True)`` at the
    item ``index[..., j]``: the relaxed probability that this item is drawn in the j-th place.

    Parameters
    ----------
    keys, k, temperature, k_max
        As for `successive_softmax`.
    index : integer Tensor, shape (..., max k)
        An item for each vector; -1 for none, as `topk_indices` pads.

    Returns
    -------
    Tensor, shape (..., max k)
        In the dtype of the keys; 0 where the index is -1 and beyond a row's own k.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As `successive_softmax` does, and for indices out of range.
    NotAvailableError
        When it is differentiated twice.

    Examples
    --------
    >>> import torch
    >>> keys = torch.tensor([1.0, 3.0, 2.0, 0.5])
    >>> successive_softmax_at(keys, 2, 0.5, torch.tensor([1, 2]))
    tensor([0.8618, 0.7082])
    >>> successive_softmax(keys, 2, 0.5, ordered=True)
    tensor([[0.0158, 0.8618, 0.1166, 0.0058],
            [0.1190, 0.1281, 0.7082, 0.0447]])

    Notes
    -----
    Accuracy and cost are those of `successive_softmax`.

    References
    ----------
    Xie & Ermon, 2019, Section 4.3 (stochastic neighbour embedding).
    """
    return successive(keys, k, temperature, ENTRIES, index, k_max)
