"""Loss of stochastic k nearest neighbours, for your own training loops."""

import torch
from torch import Tensor

from khot import _checks
from khot._estimators.distances import squared_distances
from khot.errors import InvalidTypeError, InvalidValueError
from khot.neighbors.search import matrix
from khot.sampling import Relaxation, sample_subset
from khot.topk import successive_softmax


def neighbor_logits(query_embeddings: Tensor, candidate_embeddings: Tensor, absent: Tensor | None = None) -> Tensor:
    """Negative squared distances of queries to candidates, and -inf where a candidate is absent.

    Parameters
    ----------
    query_embeddings : Tensor, shape (q, d)
        Features of the queries.
    candidate_embeddings : Tensor, shape (m, d)
        Features of the candidates.
    absent : bool Tensor, shape (q, m), optional
        Candidates that a query must not draw, such as itself.

    Returns
    -------
    Tensor, shape (q, m)
        Log-weights of the candidates, at least in float32.

    Examples
    --------
    >>> import torch
    >>> neighbor_logits(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[ -1., -25.]])
    """
    queries = matrix("query_embeddings", query_embeddings)
    candidates = matrix("candidate_embeddings", candidate_embeddings)
    if queries.shape[1] != candidates.shape[1]:
        raise InvalidValueError(
            "queries and candidates must have the same number of features, "
            f"but got shapes {tuple(queries.shape)} and {tuple(candidates.shape)}: use one encoder for both"
        )
    logits = -squared_distances(queries, candidates)
    if absent is None:
        return logits
    if not isinstance(absent, Tensor) or absent.dtype != torch.bool:
        raise InvalidTypeError(f"absent must be a bool tensor, but got {absent!r}: compare the numbers of the rows")
    if absent.shape != logits.shape:
        raise InvalidValueError(
            f"absent must have one entry for each query and candidate, shape {tuple(logits.shape)}, "
            f"but got shape {tuple(absent.shape)}: if candidates and queries are the same, pass an identity matrix"
        )
    return logits.masked_fill(absent, -torch.inf)


def neighbor_loss(
    query_embeddings: Tensor,
    candidate_embeddings: Tensor,
    query_labels: Tensor,
    candidate_labels: Tensor,
    k: int,
    temperature: float | Tensor,
    *,
    relaxation: Relaxation = successive_softmax,
    absent: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Negative share of neighbours with the right label among k relaxed neighbours.

    Each query draws a relaxed sample a of k candidates without replacement, with log-weights ``-|query - candidate|²``.
    The loss is the mean over the queries of ``-sum_j a_j [label_j is right] / k``: -1 if all neighbours are right.

    Parameters
    ----------
    query_embeddings : Tensor, shape (q, d)
        Features of the queries.
    candidate_embeddings : Tensor, shape (m, d)
        Features of the candidates.
    query_labels : integer Tensor, shape (q,)
        Classes of the queries.
    candidate_labels : integer Tensor, shape (m,)
        Classes of the candidates.
    k : int
        Number of neighbours, 1 <= k <= m.
    temperature : float or Tensor of shape (q,)
        Temperature of the relaxation, on the scale of the squared distances.
    relaxation : callable
        ``f(keys, k, temperature)``; `khot.neuralsort` for the method of Grover et al.
    absent : bool Tensor, shape (q, m), optional
        Candidates that a query must not draw. If the candidates are the queries, pass the identity matrix.
    generator : torch.Generator, optional
        Source of the noise.

    Returns
    -------
    Tensor, shape ()
        Number between about -1 and 0, with gradients in both embeddings.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For shapes that do not match, NaN, or an invalid k or temperature.

    Examples
    --------
    >>> import torch
    >>> points, labels = torch.tensor([[0.0], [1.0], [50.0], [51.0]]), torch.tensor([0, 0, 1, 1])
    >>> itself = torch.eye(4, dtype=torch.bool)
    >>> neighbor_loss(points, points, labels, labels, k=1, temperature=0.1, absent=itself)
    tensor(-1.)

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
    Grover, Wang, Zweig & Ermon, "Stochastic optimization of sorting networks via continuous relaxations", ICLR 2019.
    """
    _checks.whole_number("k", k, least=1)
    logits = neighbor_logits(query_embeddings, candidate_embeddings, absent)
    right = _labels("query", query_labels, len(logits))[:, None] == _labels(
        "candidate", candidate_labels, logits.shape[1]
    )
    chosen = sample_subset(logits, k, temperature, relaxation=relaxation, generator=generator)
    return -(chosen * right).sum(1).mean() / k


def _labels(whose: str, value: Tensor, rows: int) -> Tensor:
    _checks.instance(f"{whose}_labels", value, Tensor)
    if value.shape != (rows,):
        raise InvalidValueError(
            f"{whose}_labels must have one label for each {whose}, shape ({rows},), but got {tuple(value.shape)}: "
            "pass class numbers, not one-hot rows"
        )
    return value
