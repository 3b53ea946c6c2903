"""How the k items of a row are drawn in training: by relaxed subset sampling, or as in L2X."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from khot import _checks
from khot.sampling import Relaxation, sample_subset
from khot.topk import successive_softmax

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
    """The sampler of a name, or the given one."""
    if callable(sampler):
        return sampler
    return concrete_maximum if _checks.choice("sampler", sampler, NAMES) == "l2x" else SubsetSample(relaxation)


def concrete_maximum(
    logits: Tensor, k: int | Tensor, temperature: float, generator: torch.Generator | None = None
) -> Tensor:
    """The elementwise maximum of k independent Concrete (Gumbel-softmax) samples, which L2X takes for a k-hot vector.

    As the samples are independent, several of them may choose the same item: the vector then has fewer than k. Of
    one item it is relaxed subset sampling.

    Parameters
    ----------
    logits : Tensor, shape (..., n)
        -inf marks an absent item.
    k : int or integer Tensor of shape (...)
        How many samples.
    temperature : float
        Of the softmax.
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
    samples = sample_subset(several, 1, temperature, generator=generator)  # of one item each: Concrete samples
    if isinstance(k, Tensor):
        samples = samples * (torch.arange(most, device=k.device) < k.unsqueeze(-1)).unsqueeze(-1)
    return samples.amax(-2)
