"""Log-weights of neighbours from distances between rows."""

import math

import torch
from torch import Tensor

from khot import _checks, _jit
from khot._estimators.distances import careful_distances, squared_distances
from khot.embed._compiled import constants
from khot.errors import InvalidValueError

_ALPHAS = 1e-3, 1e6
_LOST = 1e4  # rounding errors of the largest distance, below which a distance has lost too many digits


def input_logits(rows: Tensor, perplexity: float | None = None) -> Tensor:
    """Log-weights of all rows as neighbours of each row, in the input space.

    Without a perplexity they are ``-|x_i - x_j|²``, as in the paper. With one they are ``-b_i |x_i - x_j|²`` up to a
    constant of row i, where the precision b_i makes the distribution of the neighbour of row i have this perplexity:
    the exponential of its entropy, roughly the number of neighbours that matter.

    Parameters
    ----------
    rows : Tensor, shape (n, d)
        At least two rows.
    perplexity : float, optional
        Number between 1 and n - 1.

    Returns
    -------
    Tensor, shape (n, n)
        Log-weights, at least in float32, without a gradient. The diagonal is -inf, since no row is its own neighbour.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For rows that are not finite or fewer than two, and for a perplexity out of range.

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[0.0], [1.0], [3.0]])
    >>> input_logits(rows)
    tensor([[-inf, -1., -9.],
            [-1., -inf, -4.],
            [-9., -4., -inf]])
    >>> weights = input_logits(rows, perplexity=1.5).softmax(1)
    >>> torch.special.entr(weights).sum(1).exp()
    tensor([1.5000, 1.5000, 1.5000])

    Notes
    -----
    The perplexity has a relative error of at most 1e-5, by Newton steps inside a shrinking bracket. If a row has more
    nearest neighbours at the same distance than the perplexity, only these have weights, and its perplexity is their
    number.
    """
    rows = points("rows", rows).detach()
    distances = _distances(rows)
    if perplexity is None:
        return distances.neg_()
    return _calibrate(distances, check_perplexity(perplexity, len(rows)))


def embedding_logits(embeddings: Tensor, alpha: float | None = None) -> Tensor:
    """``-|h_i - h_j|²``, or log-densities of Student-t with `alpha` degrees of freedom; -inf on the diagonal."""
    embeddings = embeddings.T.contiguous().T  # which makes the products of the backward pass several times faster
    distances = squared_distances(embeddings, embeddings)
    if alpha is None:
        return distances.neg_().fill_diagonal_(-torch.inf)
    return torch.log1p(distances.div_(alpha).relu_()).mul_(-(alpha + 1) / 2).fill_diagonal_(-torch.inf)


def check_perplexity(perplexity: float, rows: int) -> float:
    """Perplexity that is at most the number of neighbours in a batch."""
    if not 1 <= _checks.positive("perplexity", perplexity) <= rows - 1:
        raise InvalidValueError(
            f"perplexity must lie between 1 and {rows - 1}, one less than the rows of a batch, "
            f"but got {perplexity}: choose one within that range, or larger batches"
        )
    return perplexity


def check_alpha(alpha: float) -> float:
    """Degrees of freedom in the range of single precision."""
    low, high = _ALPHAS
    if not low <= _checks.positive("alpha", alpha) <= high:
        raise InvalidValueError(
            f"alpha must lie between {low:g} and {high:g}, but got {alpha}: choose one within that range"
        )
    return float(alpha)


def points(name: str, value: Tensor) -> Tensor:
    """Floating-point tensor of at least two rows."""
    tensor = _checks.float_tensor(name, value)
    if tensor.ndim != 2 or len(tensor) < 2:
        raise InvalidValueError(
            f"{name} must have shape (n, d) with at least two rows, but got {tuple(tensor.shape)}: pass a batch of rows"
        )
    return tensor


def far_apart(embeddings: Tensor) -> Tensor:
    """Whether a squared distance may not be finite."""
    wide = embeddings.detach().to(torch.promote_types(embeddings.dtype, torch.float32))
    return ~(4 * wide.square().sum()).isfinite()  # no squared distance is larger


def _distances(rows: Tensor) -> Tensor:
    """Squared distances (n, n), inf on the diagonal; from float64 for rows with a very near neighbour."""
    distances = squared_distances(rows, rows).clamp_min_(0)
    largest = distances.amax()
    if not bool(largest < torch.inf):
        raise InvalidValueError("rows must be finite and have finite distances, but some do not: scale them")
    distances.fill_diagonal_(torch.inf)
    near = distances.amin(1) <= _LOST * torch.finfo(distances.dtype).eps * largest
    if bool(near.any()):
        wide = rows.double()
        wide = wide - wide.mean(0)
        distances[near] = careful_distances(wide[near], wide, wide.square().sum(1)).to(distances.dtype)
        distances.fill_diagonal_(torch.inf)
    return distances


def _calibrate(distances: Tensor, perplexity: float) -> Tensor:
    """Turn distances, inf on the diagonal, into log-weights, in place."""
    if distances.device.type == "cpu" and _jit.AVAILABLE:
        from khot.embed._compiled.perplexity import calibrate

        calibrate(distances.numpy(), perplexity)
        return distances
    distances -= distances.amin(1, keepdim=True)
    typical = (distances / len(distances)).nan_to_num(posinf=0).sum(1, keepdim=True)
    distances /= torch.where(typical > 0, typical, 1)  # so that the precisions are not far from 1
    found = _precisions(distances.float(), perplexity)
    distances *= -found.to(distances.dtype).exp()[:, None]
    return distances


def _precisions(apart: Tensor, perplexity: float) -> Tensor:
    """Logarithms (n,) of the precisions at which neighbours have the perplexity.

    `apart` (n, m) are the distances minus the smallest, inf for a row itself.
    """
    tied = (apart == 0).sum(1) >= perplexity  # the perplexity cannot be smaller than the number of ties
    largest, longest = constants.LARGEST_PRECISION, constants.LONGEST_PRECISION_STEP
    at = torch.where(tied, largest, apart.new_zeros(len(apart)))
    low, high = torch.full_like(at, -largest), torch.full_like(at, largest)
    for _ in range(constants.PRECISION_STEPS):
        scaled = apart * at.exp()[:, None]
        weights = (-scaled).exp_()
        scaled.nan_to_num_(posinf=0)
        total = weights.sum(1)
        weights *= scaled
        mean = weights.sum(1) / total
        square = torch.linalg.vecdot(weights, scaled) / total
        excess = total.log() + mean - math.log(perplexity)  # of the entropy, which falls with the precision
        left = (excess.abs() > constants.ENTROPY_TOLERANCE) & ~tied
        if not bool(left.any()):
            break
        low, high = torch.where(excess > 0, at, low), torch.where(excess > 0, high, at)
        slope = (square - mean.square()).clamp_min(constants.ENTROPY_FLAT)
        step = at + (excess / slope).clamp(-longest, longest)
        step = torch.where((step > low) & (step < high), step, (low + high) / 2)
        at = torch.where(left, step, at)
    return at
