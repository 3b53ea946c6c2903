"""Random crops and flips of a batch of images."""

import torch
from torch import Tensor

_PADDING = 8  # one pixel on every side for each so many pixels of width: 4 for images of 32


def augmented(images: Tensor, draws: Tensor) -> Tensor:
    """Images (b, height, width, channels) moved by up to an eighth of their size, half of them mirrored.

    `draws` (b, 3) are uniform on [0, 1). What moves in from outside is 0.
    """
    _, height, width, _ = images.shape
    down, right = (_shift(draws[:, i], size) for i, size in enumerate((height, width)))
    mirrored = draws[:, 2] < 0.5
    y = torch.arange(height, device=images.device) + down[:, None]
    x = torch.arange(width, device=images.device)
    x = torch.where(mirrored[:, None], x.flip(0), x) + right[:, None]
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    image = torch.arange(len(images), device=images.device)[:, None, None]
    moved = images[image, y.clamp(0, height - 1)[:, :, None], x.clamp(0, width - 1)[:, None, :]]
    return moved * inside[..., None]


def _shift(draws: Tensor, size: int) -> Tensor:
    padding = max(1, size // _PADDING)
    return (draws * (2 * padding + 1)).long() - padding
