"""The networks of parametric t-SNE, and what counts as a layer of a network."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from khot._estimators.fitting import encoder_name
from khot.errors import InvalidTypeError, InvalidValueError

HIDDEN = {"small": (150, 150, 500), "large": (500, 500, 2000)}


class SigmoidNet(nn.Sequential):
    """Sigmoid layers and a linear one; Glorot-uniform weights, no biases at first.

    >>> SigmoidNet(784, (500, 500, 2000), 2)(torch.zeros(5, 784)).shape
    torch.Size([5, 2])
    """

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        widths = [inputs, *hidden]
        layers: list[nn.Module] = []
        for before, after in zip(widths, hidden, strict=False):
            layers += [_glorot(before, after), nn.Sigmoid()]
        super().__init__(*layers, _glorot(widths[-1], outputs))


def _glorot(before: int, after: int) -> nn.Linear:
    layer = nn.Linear(before, after)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def build(encoder: Any, inputs: int, outputs: int) -> nn.Module:
    """The encoder of a name, without looking at an encoder of yours."""
    if isinstance(encoder, nn.Module):
        return encoder
    return SigmoidNet(inputs, HIDDEN[encoder_name(encoder, HIDDEN)], outputs)


def check_output(module: nn.Module, inputs: int, outputs: int) -> None:
    """Refuse a module that does not make (b, outputs) of (b, inputs)."""
    made: object = output(module, inputs)
    shape = tuple(made.shape) if isinstance(made, Tensor) else f"a {type(made).__name__}"
    if shape != (2, outputs):
        raise InvalidValueError(
            f"the encoder must make (rows, n_components) = (2, {outputs}) of two rows, but made {shape}: "
            "change its last layer, or n_components"
        )


def output(module: nn.Module, inputs: int) -> Tensor:
    """What a module makes of two rows of zeros."""
    parameter = next(module.parameters(), None)
    training = module.training
    module.eval()
    with torch.no_grad():
        try:
            made = module(torch.zeros(2, inputs, device=None if parameter is None else parameter.device))
        except Exception as error:
            raise InvalidValueError(
                f"the encoder must take rows of {inputs} features, but failed with ({type(error).__name__}: {error}): "
                "change its first layer"
            ) from error
    module.train(training)
    return made


def split_layers(module: nn.Module) -> list[nn.Sequential]:
    """The layers of a sequence: each begins with a module that has parameters and goes up to the next such."""
    if not isinstance(module, nn.Sequential):
        raise InvalidTypeError(
            f"pretrain needs the layers of an nn.Sequential, but encoder is a {type(module).__name__}: "
            "make it one, or pass pretrain=False"
        )
    layers: list[list[nn.Module]] = []
    for part in module:
        if not layers or (_trains(part) and any(_trains(before) for before in layers[-1])):
            layers.append([])
        layers[-1].append(part)
    return [nn.Sequential(*parts) for parts in layers]


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())
