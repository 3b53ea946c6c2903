"""Differentiable subset sampling as a layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from khot import _checks
from khot.sampling import Relaxation, name_of, sample_subset
from khot.schedules import Constant
from khot.topk import hard_topk, successive_softmax


class SubsetSampler(nn.Module):
    """Layer that chooses k of n items: a relaxed random sample in training, the top k of the logits in `eval()`.

    In training it returns ``relaxation(logits + Gumbel noise, k, temperature)``, which is differentiable in the logits;
    see `khot.sample_subset`. It has no weights and no state to save.

    Parameters
    ----------
    k : int
        Size of the subset, at least 0.
    temperature : float or callable
        A positive number, or a schedule: a function of the training step, such as those of `khot.schedules`. A layer
        with a schedule starts at step 0; call `anneal` to move on.
    relaxation : callable
        ``f(keys, k, temperature) -> (..., n)``: one of khot's or your own. A k or temperature with one entry a row has
        the shape (...,); next to the keys it needs ``unsqueeze(-1)``.
    hard : bool
        Whether samples in training are straight-through: exactly k-hot, with the gradient of the relaxation.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        For a bad k, temperature or relaxation; a k above n is noticed when the layer is called.

    See Also
    --------
    khot.sample_subset : the same samples by a function.
    khot.RelaxedSubset : the same samples by a distribution.

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
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Algorithm 2; and Section
    4.2: "at test time, all explainer models deterministically choose subsets based on the highest weights".
    """

    def __init__(
        self,
        k: int,
        temperature: float | Callable[[int], float] = 1.0,
        relaxation: Relaxation = successive_softmax,
        hard: bool = False,
    ) -> None:
        super().__init__()
        if not callable(temperature):
            temperature = Constant(_checks.positive("temperature", temperature))
        self.k: int = _checks.whole_number("k", k, least=0)
        self.schedule: Callable[[int], float] = temperature
        self.relaxation: Relaxation = _checks.relaxation(relaxation)
        self.hard = hard
        self._temperature = torch.zeros((), dtype=torch.float64)  # a tensor: compiled code reads its present value
        self.anneal(0)

    def anneal(self, step: int) -> float:
        """Set the temperature to that of the schedule at a training step.

        Call it once in each step. The layer does not count the steps, so that a resumed training needs nothing else.

        Parameters
        ----------
        step : int
            Number of the step, from 0.

        Returns
        -------
        float
            The temperature.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the schedule returns something that is not a positive finite number.
        """
        temperature = _checks.positive("temperature", self.schedule(step))
        self._temperature.fill_(temperature)
        return temperature

    @property
    def temperature(self) -> float:
        """The temperature of samples, as `anneal` last set it."""
        return self._temperature.item()

    def forward(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Choose k items of each row.

        Parameters
        ----------
        logits : Tensor, shape (..., n)
            Log-weights; -inf marks an absent item.
        generator : torch.Generator, optional
            Source of the noise in training; torch's default generator if not given.

        Returns
        -------
        Tensor, shape (..., n)
            A k-hot vector for each row: relaxed in training unless `hard`, without a gradient in `eval()`.
        """
        if not self.training:
            return hard_topk(_checks.logits(logits), self.k)
        return sample_subset(
            logits, self.k, self._temperature, relaxation=self.relaxation, hard=self.hard, generator=generator
        )

    def extra_repr(self) -> str:
        return (
            f"k={self.k}, temperature={self.temperature:g}, schedule={self.schedule!r}, "
            f"relaxation={name_of(self.relaxation)}, hard={self.hard}"
        )
