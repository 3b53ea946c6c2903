"""Encoders of tables and images. The attribute `features` is the number of outputs."""

from typing import Any

import torch
from torch import Tensor, nn

from khot import _checks
from khot._estimators.fitting import encoder_name
from khot.errors import InvalidTypeError, InvalidValueError

NAMES = ("mlp", "convnet", "resnet")


class MLP(nn.Sequential):
    """Network with two hidden layers, for tables.

    >>> MLP(30)(torch.zeros(5, 30)).shape
    torch.Size([5, 64])
    """

    def __init__(self, inputs: int, width: int = 256, features: int = 64) -> None:
        super().__init__(
            *[nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, features)]
        )
        self.features = features


class ConvNet(nn.Sequential):
    """Encoder of the paper for MNIST: 20 and 50 filters of 5 × 5 with pooling, 500 features.

    Images of at most 16 × 16 pixels would be too small after two poolings: their convolutions are padded, and they are
    pooled once.

    >>> ConvNet(1, 28, 28)(torch.zeros(5, 1, 28, 28)).shape, ConvNet(1, 8, 8)(torch.zeros(5, 1, 8, 8)).shape
    (torch.Size([5, 500]), torch.Size([5, 500]))
    """

    def __init__(self, channels: int, height: int, width: int, features: int = 500) -> None:
        small = min(height, width) <= 16
        padding = 2 if small else 0
        layers = [
            *[nn.Conv2d(channels, 20, 5, padding=padding), nn.ReLU(), nn.Identity() if small else nn.MaxPool2d(2)],
            *[nn.Conv2d(20, 50, 5, padding=padding), nn.ReLU(), nn.AdaptiveMaxPool2d(4), nn.Flatten()],
        ]
        super().__init__(*layers, nn.Linear(50 * 16, features), nn.ReLU())
        self.features = features


class ResNet(nn.Sequential):
    """Small residual network with batch normalisation, for images of at least 8 × 8 pixels; 4 `width` features.

    The features lie on a sphere of radius 3, so that a temperature of 1 suits their squared distances.

    >>> ResNet(3, width=16)(torch.zeros(5, 3, 32, 32)).shape
    torch.Size([5, 64])
    """

    def __init__(self, channels: int, width: int = 64) -> None:
        super().__init__(
            *[nn.Conv2d(channels, width // 2, 3, padding=1), nn.ReLU(inplace=True)],
            *[_Stage(width // 2, width), _Stage(width, 4 * width), _Stage(4 * width, 4 * width)],
            *[nn.AdaptiveMaxPool2d(1), nn.Flatten(), _Sphere(3.0)],
        )
        self.features: int = 4 * width
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


class _Stage(nn.Module):
    """Convolution with pooling to half the height and width, then a residual convolution."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.enter = nn.Sequential(_convolution(before, after), nn.MaxPool2d(2), *_normalized(after))
        self.change = nn.Sequential(_convolution(after, after), *_normalized(after))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        return x + self.change(x)


class _Sphere(nn.Module):
    def __init__(self, radius: float) -> None:
        super().__init__()
        self.radius = radius

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=1) * self.radius


def _convolution(before: int, after: int) -> nn.Module:
    return nn.Conv2d(before, after, 3, padding=1, bias=False)


def _normalized(width: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]


def with_head(encoder: nn.Module, classes: int) -> nn.Module:
    """Add a linear layer to an encoder of khot, for the baseline that is trained by cross-entropy.

    Parameters
    ----------
    encoder : MLP, ConvNet or ResNet
        Encoder, which becomes part of the result.
    classes : int
        Number of classes, each with one logit.

    Returns
    -------
    nn.Module
        Rows to logits (b, classes).

    Examples
    --------
    >>> network = with_head(MLP(30), classes=10)
    >>> nn.functional.cross_entropy(network(torch.zeros(5, 30)), torch.zeros(5, dtype=torch.long)).ndim
    0
    """
    if not isinstance(encoder, MLP | ConvNet | ResNet):
        raise InvalidTypeError(
            f"encoder must be an MLP, ConvNet or ResNet of khot, but got {type(encoder).__name__}: "
            "add nn.Linear(features, classes) to your own encoder"
        )
    return nn.Sequential(encoder, nn.Linear(encoder.features, _checks.whole_number("classes", classes, least=2)))


def build(encoder: Any, shape: tuple[int, ...]) -> nn.Module:
    """Build the encoder of a name for rows (d,) or (height, width, channels). A module is returned as it is."""
    if isinstance(encoder, nn.Module):
        return encoder
    name = encoder_name(encoder, NAMES)
    if (name == "mlp") != (len(shape) == 1):
        wanted, hint = "tables (n, d)", "pass 'convnet' or 'resnet', or flatten the rows"
        if name != "mlp":
            wanted, hint = "images (n, height, width[, channels])", "pass 'mlp', or give the rows that shape"
        raise InvalidValueError(f"encoder {name!r} is for {wanted}, but got rows of shape {shape}: {hint}")
    if name == "mlp":
        return MLP(shape[0])
    height, width, channels = shape
    if min(height, width) < 8:
        raise InvalidValueError(
            f"encoder {name!r} needs images of at least 8 × 8 pixels, but got {height} × {width}: "
            "enlarge them, or flatten them for encoder 'mlp'; if their channels come first, move them to the end"
        )
    return ConvNet(channels, height, width) if name == "convnet" else ResNet(channels)
