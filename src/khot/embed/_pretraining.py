"""Pretraining of an encoder as an autoencoder with a linear decoder, layer by layer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from khot._estimators.scaling import Scaling
from khot.embed.networks import output, split_layers
from khot.training import RMSprop, Settings, Step, fit
from khot.training.steps import key

_RATE = 1e-3


@dataclass(frozen=True)
class _Restoration:
    """Mean squared error of restored rows."""

    scaling: Scaling = field(repr=False)

    def __call__(self, module: nn.Module, batch: Tensor, step: Step) -> Tensor:
        rows = self.scaling(batch)
        return nn.functional.mse_loss(module(rows), rows)


def pretrain(
    module: nn.Module,
    X: Any,  # noqa: N803
    scaling: Scaling,
    epochs: int,
    batch_size: int,
    seed: int,
    folder: Path,
    **options: Any,
) -> None:
    """Train layers 1 to l of a sequence and a new linear decoder, for l = 1, 2, ...; `options` are those of `fit`."""
    layers = split_layers(module)
    for count in range(1, len(layers) + 1):
        encoder = nn.Sequential(*layers[:count])
        with torch.random.fork_rng([]):
            torch.manual_seed(key(seed, "decoder", count))
            decoder = nn.Linear(output(encoder, X.shape[1]).flatten(1).shape[1], X.shape[1])
        network = nn.Sequential(encoder, nn.Flatten(), decoder)
        settings = Settings(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=_RATE,
            optimizer=RMSprop(),
            random_state=key(seed, "layer", count),
        )
        fit(network, _Restoration(scaling), X, settings, folder=folder / f"layer-{count}", **options)
