"""Random crops and flips of a batch of images."""

import torch
from torch import Tensor

CHOICES = ("none", "crop", "flip", "both")

_PADDING = 8  # pixels of width for each pixel of padding on a side: 4 for images of 32


def augmented(images: Tensor, draws: Tensor, choice: str) -> Tensor:
    """Images (b, height, width, channels), moved by up to an eighth of their size, half of them mirrored, or both.

    `draws` (b, 3) are uniform on [0, 1). Pixels from outside the image are reflected at its edge.
    """
    _, height, width, _ = images.shape
    y, x = torch.arange(height, device=images.device), torch.arange(width, device=images.device)
    if choice in ("flip", "both"):
        x = torch.where(draws[:, 2:] < 0.5, x.flip(0), x)
    if choice in ("crop", "both"):
        y, x = _moved(y, draws[:, :1], height), _moved(x, draws[:, 1:2], width)
    image = torch.arange(len(images), device=images.device)[:, None, None]
    return images[image, y.expand(len(images), -1)[:, :, None], x.expand(len(images), -1)[:, None, :]]


def _moved(places: Tensor, draws: Tensor, size: int) -> Tensor:
    """Indices of pixels, moved by a random number and reflected at both ends."""
    padding = max(1, size // _PADDING)
    places = (places + (draws * (2 * padding + 1)).long() - padding).abs()
    return size - 1 - (size - 1 - places).abs()
