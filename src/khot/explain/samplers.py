"""Choices of k items for each row: relaxed samples as in training, random subsets, and the top k."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from khot import _checks
from khot.sampling import Relaxation, sample_subset
from khot.topk import hard_topk, successive_softmax

NAMES = ("subset", "l2x")

Sampler = Callable[[Tensor, int | Tensor, float, torch.Generator | None], Tensor]
"""``f(logits (..., n), k, temperature, generator) -> (..., n)``: a random relaxed choice of k items."""


@dataclass(frozen=True)
class SubsetSample:
    """Relaxed subset sampling: k items without replacement."""

    relaxation: Relaxation = successive_softmax

    def __call__(
        self, logits: Tensor, k: int | Tensor, temperature: float, generator: torch.Generator | None = None
    ) -> Tensor:
        return sample_subset(logits, k, temperature, relaxation=self.relaxation, generator=generator)


def find(sampler: str | Sampler, relaxation: Relaxation) -> Sampler:
    """The sampler with a name, or the given function."""
    if callable(sampler):
        return sampler
    return concrete_maximum if _checks.choice("sampler", sampler, NAMES) == "l2x" else SubsetSample(relaxation)


def concrete_maximum(
    logits: Tensor, k: int | Tensor, temperature: float, generator: torch.Generator | None = None
) -> Tensor:
    """Elementwise maximum of k independent Concrete (Gumbel-softmax) samples, which L2X uses as a k-hot vector.

    Since the samples are independent, several of them may choose the same item: the vector then has fewer than k items.
    With k = 1 this is relaxed subset sampling.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        -inf marks an absent item.
    k : int or integer Tensor of shape (...)
        Number of samples.
    temperature : float
        Temperature of the softmax.
    generator : torch.Generator, optional
        Source of the noise.

    Returns
    -------
    Tensor, shape (..., n)
        Entries between 0 and 1.

    Examples
    --------
    >>> concrete_maximum(torch.tensor([9.0, 0.0, -torch.inf]), k=2, temperature=0.1).round()
    tensor([1., 0., 0.])

    References
    ----------
    Chen, Song, Wainwright & Jordan, "Learning to explain", ICML 2018.
    """
    most = int(k.max()) if isinstance(k, Tensor) else k
    if most == 0:
        return torch.zeros_like(logits)
    several = logits.unsqueeze(-2).expand(*logits.shape[:-1], most, logits.shape[-1])
    samples = sample_subset(several, 1, temperature, generator=generator)  # subsets of one item: Concrete samples
    if isinstance(k, Tensor):
        samples = samples * (torch.arange(most, device=k.device) < k.unsqueeze(-1)).unsqueeze(-1)
    return samples.amax(-2)


def choose_items(logits: Tensor, eligible: Tensor, forced: Tensor, k: int, choose: Callable = hard_topk) -> Tensor:
    """Mask (b, items) of the forced items, and of the remaining ones up to k, chosen from the eligible items.

    ``choose(logits, k)`` chooses these; by default they are the items with the top logits. The mask is NaN if a logit
    is, so that the training reports that it diverged.
    """
    if bool(logits.isnan().any()):
        return logits * torch.nan
    free = logits.masked_fill(~eligible | forced, -torch.inf)
    wanted = min(k, logits.shape[-1])
    if not forced.any():
        return choose(free, wanted)
    return forced + choose(free, (wanted - forced.sum(-1)).clamp(min=0))


def random_subsets(eligible: Tensor, forced: Tensor, k: int, draws: int, seed: int) -> Tensor:
    """Flags (n, draws, items) of `draws` random subsets of k items for each row, which contain the forced items."""
    generator = torch.Generator().manual_seed(seed)
    scores = (torch.rand(eligible.shape, generator=generator) for _ in range(draws))
    return torch.stack([choose_items(one, eligible, forced, k).bool() for one in scores], 1)
