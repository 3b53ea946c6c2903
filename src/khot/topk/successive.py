"""The paper's relaxation: k softmaxes in succession, each lowering the keys of what has been taken."""

from torch import Tensor

from khot.topk._rows import finish_sum, finish_vectors, prepare
from khot.topk._successive_autograd import successive


def successive_softmax(keys: Tensor, k: int | Tensor, temperature: float | Tensor, *, ordered: bool = False) -> Tensor:
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
    row, or 1e-10 of the cotangent where the whole gradient is smaller. Half-precision keys are computed in float64 and
    returned in their dtype.

    References
    ----------
    Plötz & Roth, "Neural nearest neighbors networks", NeurIPS 2018; Xie & Ermon, 2019, Section 3.3.
    """
    rows = prepare(keys, k, temperature)
    result = successive(rows, ordered)
    return finish_vectors(result, rows, ordered) if ordered else finish_sum(result, rows)
