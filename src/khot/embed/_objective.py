"""Loss of a training step of an embedding, and of its validation."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from khot._estimators.scaling import Scaling
from khot.embed.logits import far_apart, input_logits
from khot.embed.losses import subset_sne_loss, tsne_loss
from khot.training import Step, gather_with_grad
from khot.training.processes import own_share, processes
from khot.training.steps import key


@dataclass(frozen=True)
class SubsetObjective:
    """Loss of `SubsetSNE`. Without a perplexity, distances are raw."""

    k: int
    perplexity: float | None
    alpha: float | None
    bias: float
    noise: str
    samples: int
    mutual: bool

    def __call__(self, rows: Tensor, embeddings: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
        options = asdict(self)
        logits = input_logits(rows, options.pop("perplexity"))
        return subset_sne_loss(logits, embeddings, temperature=temperature, generator=generator, **options)


@dataclass(frozen=True)
class StudentObjective:
    """Loss of `ParametricTSNE`."""

    perplexity: float
    alpha: float

    def __call__(self, rows: Tensor, embeddings: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
        return tsne_loss(input_logits(rows, self.perplexity), embeddings, self.alpha)


@dataclass(frozen=True)
class Objective:
    """Loss such as these, with distances in the input space along some axes (d, p) only, if there are any."""

    loss: Any
    axes: Tensor | None = field(repr=False)

    def __call__(self, rows: Tensor, embeddings: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
        seen = rows if self.axes is None else rows @ self.axes.to(rows.device)
        return self.loss(seen, embeddings, temperature, generator)


@dataclass(frozen=True)
class BatchLoss:
    """Objective of a batch, for the rows of all processes together.

    The noise follows from the seed and the number of the step, so that any number of processes computes the same loss.
    """

    objective: Any
    scaling: Scaling = field(repr=False)
    seed: int
    dropout: float

    def __call__(self, module: nn.Module, batch: Tensor, step: Step) -> Tensor:
        rows = self.scaling(batch)
        embeddings = module(self._thinned(rows, step.number) if self.dropout else rows)
        if bool(far_apart(embeddings)):
            return embeddings.sum() * torch.nan  # the training then reports that it diverged
        generator = torch.Generator(rows.device).manual_seed(key(self.seed, "neighbors", step.number))
        return self.objective(gather_with_grad(rows), gather_with_grad(embeddings), step.temperature, generator)

    def _thinned(self, rows: Tensor, number: int) -> Tensor:
        generator = torch.Generator(rows.device).manual_seed(key(self.seed, "dropout", number))
        kept = rows.new_empty(processes() * len(rows), rows.shape[1]).bernoulli_(1 - self.dropout, generator=generator)
        return rows * own_share(kept) / (1 - self.dropout)


@dataclass(frozen=True)
class FixedLoss:
    """Objective of some training rows at a fixed temperature with fixed noise, to compare the epochs of a schedule."""

    objective: Any
    rows: Tensor = field(repr=False)
    temperature: float
    seed: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        device = next(module.parameters()).device
        rows = self.rows.to(device)
        generator = torch.Generator(device).manual_seed(key(self.seed, "fixed"))
        embeddings = module(rows)
        if bool(far_apart(embeddings)):
            return {"loss": math.nan}
        return {"loss": float(self.objective(rows, embeddings, self.temperature, generator))}
