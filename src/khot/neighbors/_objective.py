"""Loss of a training step of the classifier."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from khot._estimators.scaling import Scaling
from khot.neighbors.augmentation import augmented
from khot.neighbors.losses import neighbor_loss
from khot.training import Step, gather_with_grad
from khot.training.processes import own_share, processes
from khot.training.steps import key


@dataclass(frozen=True)
class NeighborLoss:
    """Loss of each row of the batch among candidates drawn from the other training rows.

    Random numbers are drawn for the batch of all processes together, from the seed and the number of the step, so that
    any number of processes computes the same loss.
    """

    inputs: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    scaling: Scaling = field(repr=False)
    k: int
    candidates: int
    relaxation: Any
    augment: str
    seed: int
    data: str = ""  # digest of all rows, labels and their scaling, so that a resumed training has the same

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
            return features.sum() * torch.nan  # the training then reports that it diverged
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
