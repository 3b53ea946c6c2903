"""Losses of neighbour embeddings, for your own training loops."""

import math

import torch
from torch import Tensor

from khot import _checks
from khot.embed.logits import check_alpha, embedding_logits, far_apart, points
from khot.errors import InvalidValueError
from khot.keys import gumbel_keys, perturbed
from khot.topk import successive_softmax_at

NOISES = ("both", "input")


def subset_sne_loss(
    logits: Tensor,
    embeddings: Tensor,
    k: int = 1,
    temperature: float = 0.1,
    *,
    alpha: float | None = None,
    bias: float = 1e-8,
    noise: str = "both",
    samples: int = 1,
    mutual: bool = False,
    reversed_noise: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Negative log-likelihood, in the embedding, of neighbours that are drawn in the input space.

    Each point i draws a sequence of k neighbours without replacement, with log-weights `logits`, and a relaxed
    sequence, a, with log-weights ``-|h_i - h_j|²``. The loss is the mean over i of ``sum_j exp(1 - j) * -log(a_j[j-th
    neighbour] + bias)``.

    Parameters
    ----------
    logits : Tensor, shape (n, n)
        Log-weights of neighbours in the input space, -inf on the diagonal: `input_logits`.
    embeddings : Tensor, shape (n, d)
        Points h_i.
    k : int
        Number of neighbours, 1 <= k <= n - 1.
    temperature : float
        Temperature of the successive softmax that relaxes the sequence in the embedding.
    alpha : float, optional
        Degrees of freedom of a Student-t density, whose logarithm then replaces ``-|h_i - h_j|²``, as in `tsne_loss`.
        A small number leaves more room between points that are not neighbours.
    bias : float
        Bound of the loss and its gradient where a neighbour has almost no weight. It can be 0 only for k = 1.
    noise : {"both", "input"}
        Whether the keys in the embedding are perturbed as well, or are the log-weights themselves.
    samples : int
        Number of independent draws of the noise, whose losses are averaged.
    mutual : bool
        Whether a point should also be a likely neighbour of the neighbour that it draws. The loss then is the mean of
        both directions. Only for k = 1.
    reversed_noise : bool
        An experiment: noise of the wrong sign, log(-log u), in both spaces, as in code that was published in 2019. The
        sequences then are not samples without replacement.
    generator : torch.Generator, optional
        Source of the noise.

    Returns
    -------
    Tensor, shape ()
        Loss, with a gradient in the embeddings.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For shapes that do not match, NaN, or arguments out of range.

    Examples
    --------
    >>> import torch
    >>> from khot.embed import input_logits
    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [50.0, 0.0], [51.0, 0.0]])
    >>> logits = input_logits(rows)
    >>> subset_sne_loss(logits, rows[:, :1])    # the embedding has the same neighbours
    tensor(-0.)
    >>> subset_sne_loss(logits, rows[[0, 2, 1, 3], :1])
    tensor(18.4207)

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Section 4.3.
    """
    _check_pairs(logits, embeddings)
    check_sampling("k", k, len(embeddings), noise=noise, samples=samples, bias=bias, mutual=mutual)
    _checks.generator(generator)
    shape = (samples, *logits.shape)
    chosen = _drawn(logits.detach(), shape, k, generator, reversed_noise)
    keys = embedding_logits(embeddings, None if alpha is None else check_alpha(alpha))
    if noise == "both":
        keys = _keys(keys, shape, generator, reversed_noise)
    temperature = _checks.positive("temperature", temperature)
    if k == 1:
        return _of_one_neighbor(keys, temperature, bias, chosen, mutual)
    entries = successive_softmax_at(keys.expand(shape), k, temperature, chosen)
    weights = torch.exp(-torch.arange(k, dtype=entries.dtype, device=entries.device))
    return -((entries + bias).log() @ weights).mean()


def tsne_loss(logits: Tensor, embeddings: Tensor, alpha: float = 1.0) -> Tensor:
    """Kullback-Leibler divergence between pairs of neighbours in the input space and in the embedding.

    With p_j|i the softmax of row i of `logits` and ``p_ij = (p_j|i + p_i|j) / 2n``, and q_ij, for i ≠ j, proportional
    to the Student-t density ``(1 + |h_i - h_j|² / alpha) ** (-(alpha + 1) / 2)``, the loss is ``sum_ij p_ij log(p_ij /
    q_ij)``.

    Parameters
    ----------
    logits : Tensor, shape (n, n)
        Log-weights of neighbours in the input space, -inf on the diagonal: `input_logits` with a perplexity.
    embeddings : Tensor, shape (n, d)
        Points h_i.
    alpha : float
        Degrees of freedom. A small number moves points that are not neighbours farther apart.

    Returns
    -------
    Tensor, shape ()
        Loss, not negative, with a gradient in the embeddings.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For shapes that do not match, NaN, or arguments out of range.

    Examples
    --------
    >>> import torch
    >>> from khot.embed import input_logits
    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [50.0, 0.0], [51.0, 0.0]])
    >>> logits = input_logits(rows, perplexity=1.1)
    >>> right, wrong = (tsne_loss(logits, rows[order, :1]) for order in ([0, 1, 2, 3], [0, 2, 1, 3]))
    >>> bool(right < wrong)
    True

    References
    ----------
    van der Maaten, "Learning a parametric embedding by preserving local structure", AISTATS 2009.
    """
    _check_pairs(logits, embeddings)
    alpha = check_alpha(alpha)
    likely = embedding_logits(embeddings, alpha)
    likely = likely.to(torch.promote_types(likely.dtype, logits.dtype))
    likely.fill_diagonal_(torch.finfo(likely.dtype).min)  # times 0 is 0, while -inf would give NaN
    given = logits.detach().to(likely.dtype).softmax(1)
    pairs = (given + given.T).div_(2 * len(given))
    surprise = pairs.clamp_min(torch.finfo(pairs.dtype).tiny).log_() - likely
    return (pairs * surprise).sum() + likely.flatten().logsumexp(0)


def _drawn(
    logits: Tensor, shape: tuple[int, ...], k: int, generator: torch.Generator | None, reversed_noise: bool
) -> Tensor:
    """Draw the neighbours (samples, n, k) of every row. A single one needs no keys: its distribution is the softmax."""
    if k > 1 or reversed_noise:
        return _keys(logits, shape, generator, reversed_noise).topk(k).indices
    draws = max(2, shape[0])  # for a single draw, torch draws noise for every item, which takes far longer
    found = torch.multinomial(logits.softmax(-1), draws, replacement=True, generator=generator)
    return found.T[: shape[0], :, None]


def _keys(logits: Tensor, shape: tuple[int, ...], generator: torch.Generator | None, reversed_noise: bool) -> Tensor:
    if not reversed_noise:
        return perturbed(logits, shape, generator, centred=True)
    largest = logits.detach().amax(-1, keepdim=True)
    return (logits - largest).expand(shape) - gumbel_keys(logits.new_zeros(shape), generator)


def _of_one_neighbor(keys: Tensor, temperature: float, bias: float, chosen: Tensor, mutual: bool) -> Tensor:
    """Loss for one neighbour, whose relaxed vector is a softmax. All samples may share their keys.

    Without a bias it is computed from logarithms, which do not underflow.
    """
    limits = torch.finfo(keys.dtype)
    temperature = min(max(temperature, limits.tiny), limits.max)
    likely = ((keys - keys.detach().amax(-1, keepdim=True)) / temperature).log_softmax(-1)
    chosen = chosen if keys.ndim == 3 else chosen.squeeze(-1).T
    likely = torch.stack([table.gather(-1, chosen) for table in ((likely, likely.mT) if mutual else (likely,))])
    return -(likely if bias == 0 else (likely.exp() + bias).log()).mean()


def check_sampling(name: str, k: int, rows: int, *, noise: str, samples: int, bias: float, mutual: bool) -> None:
    """Refuse a number of neighbours, called `name`, and arguments of `subset_sne_loss` that do not fit."""
    if _checks.whole_number(name, k, least=1) > rows - 1:
        raise InvalidValueError(
            f"{name} must be at most {rows - 1}, one less than the rows of a batch, but got {k}: "
            "choose fewer neighbours, or larger batches"
        )
    _checks.choice("noise", noise, NOISES)
    _checks.whole_number("samples", samples, least=1)
    if _checks.not_negative("bias", bias) == 0 and k > 1:
        raise InvalidValueError(f"bias can be 0 only for {name} = 1, but got {k}: pass a small bias such as 1e-8")
    if _checks.flag("mutual", mutual) and k > 1:
        raise InvalidValueError(f"mutual is only for {name} = 1, but got {k}: pass {name}=1, or mutual=False")


def _check_pairs(logits: Tensor, embeddings: Tensor) -> None:
    rows = len(points("embeddings", embeddings))
    if _checks.holds(far_apart(embeddings)):
        raise InvalidValueError(
            "embeddings must be finite and have finite distances, but some do not: "
            "scale them, or train with a smaller learning rate"
        )
    if _checks.logits(logits).shape != (rows, rows):
        raise InvalidValueError(
            f"logits must have one entry for each pair of embeddings, shape {(rows, rows)}, "
            f"but got {tuple(logits.shape)}: compute them for the same rows by input_logits"
        )
    if _checks.holds(logits.diagonal() > -math.inf):
        raise InvalidValueError("logits must be -inf on the diagonal, since no row is its own neighbour: fill it in")
    if _checks.holds(logits.amax(1) == -math.inf):
        raise InvalidValueError("logits must be above -inf for a neighbour of each row, but a row has none: drop it")
