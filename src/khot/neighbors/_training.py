"""What the training of the classifier computes in a step, and at the end of an epoch."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from khot.neighbors.augmentation import augmented
from khot.neighbors.embedding import embed, share_right
from khot.neighbors.losses import neighbor_loss
from khot.neighbors.scaling import Scaling
from khot.training import Step, gather_with_grad
from khot.training.processes import own_share, processes
from khot.training.steps import key


@dataclass(frozen=True)
class NeighborLoss:
    """Each row of the batch against candidates drawn from all training rows, itself excluded.

    All that is random is drawn for the batch of all processes together, from the seed and the number of the step, so
    that any number of processes computes the same.
    """

    inputs: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    scaling: Scaling = field(repr=False)
    k: int
    candidates: int
    relaxation: Any
    augment: str
    seed: int
    data: str = ""  # a digest of all that is not in the rows of the training, so that a resumed one has the same

    def __call__(self, module: nn.Module, batch: tuple[Tensor, Tensor], step: Step) -> Tensor:
        images, labels = batch
        device, rows = images.device, step.rows.to(images.device)
        noise = torch.Generator().manual_seed(key(self.seed, "candidates", step.number))
        chosen = torch.randperm(len(self.inputs), generator=noise)[: self.candidates]
        own = own_share(chosen)
        inputs = torch.cat([images, torch.from_numpy(self.inputs[own.numpy()]).to(device)])
        if self.augment != "none":
            inputs = self._augmented(inputs, len(images), noise)

        features = module(self.scaling(inputs))
        if not bool(features.detach().isfinite().all()):
            return features.sum() * torch.nan  # for the training to say that it diverged
        queries, candidates = features.split([len(images), len(own)])
        chosen = chosen.to(device)
        return neighbor_loss(
            gather_with_grad(queries),
            gather_with_grad(candidates),
            gather_with_grad(labels),
            torch.from_numpy(self.labels).to(device)[chosen],
            self.k,
            step.temperature,
            relaxation=self.relaxation,
            absent=gather_with_grad(rows)[:, None] == chosen,
            generator=torch.Generator(device).manual_seed(key(self.seed, "neighbors", step.number)),
        )

    def _augmented(self, inputs: Tensor, queries: int, noise: torch.Generator) -> Tensor:
        draws = [torch.rand(count * processes(), 3, generator=noise) for count in (queries, len(inputs) - queries)]
        return augmented(inputs, torch.cat([own_share(part) for part in draws]).to(inputs.device), self.augment)


@dataclass(frozen=True)
class Validation:
    """The accuracy of held-out rows, with the training rows as references."""

    inputs: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    references: np.ndarray = field(repr=False)
    reference_labels: np.ndarray = field(repr=False)
    scaling: Scaling = field(repr=False)
    k: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        embeddings, references = (embed(module, rows, self.scaling) for rows in (self.inputs, self.references))
        if not (embeddings.isfinite().all() and references.isfinite().all()):
            return {"accuracy": math.nan}
        return {"accuracy": share_right(embeddings, self.labels, references, self.reference_labels, self.k)}
