"""The sampler as a layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from khot import _checks
from khot.sampling import Relaxation, sample_subset
from khot.schedules import Constant
from khot.topk import hard_topk, successive_softmax


class SubsetSampler(nn.Module):
    """Choose k of n items: a differentiable sample in training, the top k of the logits in `eval()`.

    Parameters
    ----------
    k : int
        Size of the subset.
    temperature : float or callable
        A number, or a schedule: a function of the training step, such as those of `khot.schedules`.
    relaxation : callable
        ``f(keys, k, temperature) -> (..., n)``.
    hard : bool
        In training, straight-through samples: exact k-hot vectors with the relaxation's gradient.

    Examples
    --------
    >>> import torch, khot
    >>> from khot.schedules import Exponential
    >>> layer = khot.nn.SubsetSampler(2, Exponential(2.0, 0.1, steps=1000), hard=True)
    >>> layer.anneal(step=500)
    0.447...
    >>> layer.eval()(torch.tensor([0.5, 3.0, 1.0, -1.0]))
    tensor([0., 1., 1., 0.])

    References
    ----------
    Xie & Ermon, 2019, Algorithm 2; "at test time, all explainer models deterministically choose subsets based on the
    highest weights" (Section 4.2).
    """

    def __init__(
        self,
        k: int,
        temperature: float | Callable[[int], float] = 1.0,
        relaxation: Relaxation = successive_softmax,
        hard: bool = False,
    ) -> None:
        super().__init__()
        self.k = _checks.whole_number("k", k, least=0)
        self.schedule = temperature if callable(temperature) else Constant(_checks.positive("temperature", temperature))
        self.relaxation = _checks.relaxation(relaxation)
        self.hard = hard
        self._temperature = torch.zeros((), dtype=torch.float64)  # a tensor, so that compiled code follows it
        self.anneal(0)

    def anneal(self, step: int) -> float:
        """Set the temperature to the schedule's at `step` and return it.

        Call it once a training step. The layer keeps no count of its own, so resuming at a step needs nothing else.
        """
        temperature = _checks.positive("temperature", self.schedule(step))
        self._temperature.fill_(temperature)
        return temperature

    @property
    def temperature(self) -> float:
        """The present temperature."""
        return self._temperature.item()

    def forward(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Logits (..., n) to a k-hot vector of the same shape, relaxed while training unless `hard`.

        `generator` fixes the noise of the sample.
        """
        if not self.training:
            return hard_topk(_checks.logits(logits), self.k)
        return sample_subset(
            logits, self.k, self._temperature, relaxation=self.relaxation, hard=self.hard, generator=generator
        )

    def extra_repr(self) -> str:
        relaxation = getattr(self.relaxation, "__name__", repr(self.relaxation))
        return (
            f"k={self.k}, temperature={self.temperature:g}, schedule={self.schedule!r}, "
            f"relaxation={relaxation}, hard={self.hard}"
        )
