"""Networks of parametric t-SNE, and the division of networks into layers."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from khot._estimators.fitting import encoder_name
from khot.errors import InvalidTypeError, InvalidValueError

HIDDEN = {"small": (150, 150, 500), "large": (500, 500, 2000)}


class SigmoidNet(nn.Sequential):
    """Network of sigmoid layers and a linear one, with Glorot-uniform weights and zero biases at first.

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
    """Build the encoder of a name. A module is returned as it is."""
    if isinstance(encoder, nn.Module):
        return encoder
    return SigmoidNet(inputs, HIDDEN[encoder_name(encoder, HIDDEN)], outputs)


def check_output(module: nn.Module, inputs: int, outputs: int) -> None:
    """Refuse a module that does not map (b, inputs) to (b, outputs)."""
    found: object = output(module, inputs)
    shape = tuple(found.shape) if isinstance(found, Tensor) else f"a {type(found).__name__}"
    if shape != (2, outputs):
        raise InvalidValueError(
            f"the encoder must return shape (rows, n_components) = (2, {outputs}) for two rows, but got {shape}: "
            "change its last layer, or n_components"
        )


def output(module: nn.Module, inputs: int) -> Tensor:
    """Output of a module for two rows of zeros."""
    parameter = next(module.parameters(), None)
    training = module.training
    module.eval()
    with torch.no_grad():
        try:
            found = module(torch.zeros(2, inputs, device=None if parameter is None else parameter.device))
        except Exception as error:
            raise InvalidValueError(
                f"the encoder must take rows of {inputs} features, but failed with ({type(error).__name__}: {error}): "
                "change its first layer"
            ) from error
    module.train(training)
    return found


def split_layers(module: nn.Module) -> list[nn.Sequential]:
    """Layers of a sequence: each starts with a module that has parameters, and ends before the next one."""
    if not isinstance(module, nn.Sequential):
        raise InvalidTypeError(
            f"pretrain needs the layers of an nn.Sequential, but encoder is a {type(module).__name__}: "
            "make it an nn.Sequential, or pass pretrain=False"
        )
    layers: list[list[nn.Module]] = []
    for part in module:
        if not layers or (_trains(part) and any(_trains(before) for before in layers[-1])):
            layers.append([])
        layers[-1].append(part)
    return [nn.Sequential(*parts) for parts in layers]


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())
