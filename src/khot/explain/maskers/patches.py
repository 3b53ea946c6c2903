"""Masker of images, whose items are square patches."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from khot import _checks
from khot._estimators.scaling import Scaling, mean_and_spread, one_for_zero
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.maskers.forms import array, replaced, same_shape
from khot.explain.maskers.items import Items
from khot.explain.networks import PatchPredictor, PatchSelector

_ENLARGED = 256  # approximate size of a picture in pixels
_FRAME = 2  # width of the frame of a patch in pixels
_COLOUR = (1.0, 0.55, 0.0)


@dataclass
class Patches:
    """Patches of images (n, height, width[, channels]) as items, row by row from the upper left.

    Parameters
    ----------
    size : int
        Side of a patch in pixels. Patches at the lower and right edge may be smaller.
    baseline : float, optional
        Value of the pixels that are not chosen, by default the mean of their channel, rounded for images of whole
        numbers. Images that cannot hold it become images of floating-point numbers.

    Examples
    --------
    >>> image = np.arange(16.0).reshape(1, 4, 4)
    >>> masker = Patches(size=2, baseline=0).fit(image)
    >>> masker.mask(image, np.array([[False, True, False, False]]))[0]
    array([[0., 0., 2., 3.],
           [0., 0., 6., 7.],
           [0., 0., 0., 0.],
           [0., 0., 0., 0.]])
    """

    size: int = 4
    baseline: float | None = None
    shape_: list[int] = field(init=False, repr=False, default_factory=list)
    mean_: list[float] = field(init=False, repr=False, default_factory=list)
    scale_: float = field(init=False, repr=False, default=1.0)

    def fit(self, X: Any) -> "Patches":  # noqa: N803
        """Learn the shape of the images, and mean and scale of the pixels."""
        self.size = _checks.whole_number("size", self.size, least=1)
        self.baseline = None if self.baseline is None else _baseline(self.baseline)
        images = _images(X)
        self.shape_ = list(images.shape[1:])
        if self.size > max(self.shape_[:2]):
            raise InvalidValueError(
                f"size must be at most that of the images, {tuple(self.shape_[:2])}, but got {self.size}: lower it"
            )
        self.mean_ = mean_and_spread(lambda: [images])[0].tolist()
        self.scale_ = float(one_for_zero(mean_and_spread(lambda: [images[..., None]])[1])[0])
        return self

    def encode(self, X: Any) -> Items:  # noqa: N803
        """Pixels (n, channels, height, width) scaled to mean 0 and variance 1; all items are present."""
        codes = Scaling(np.array(self.mean_), np.array(self.scale_))(torch.from_numpy(self._checked(X)))
        if not codes.isfinite().all():
            raise InvalidValueError(
                "pixels must be about as large as in fit, and below 1e300, but some are not: divide them"
            )
        down, across = self.grid
        return Items(codes, torch.ones(len(codes), down * across, dtype=torch.bool))

    def mask(self, X: Any, chosen: np.ndarray) -> Any:  # noqa: N803
        """The images with the baseline in the patches that are not chosen."""
        self._checked(X)
        images, pixels = array("images", X), self._pixels(chosen)
        mean = np.rint(self.mean_) if images.dtype.kind in "iu" else self.mean_
        baseline = mean if self.baseline is None else self.baseline
        return replaced(X, pixels if images.ndim == 4 else pixels[..., 0], baseline)

    def pieces(self, row: Any) -> list[tuple[str, int | None]]:
        """Row and column of each patch, from 1."""
        down, across = self.grid
        return [(f"patch ({i + 1}, {j + 1}) ", i * across + j) for i in range(down) for j in range(across)]

    def picture(self, row: Any, chosen: np.ndarray) -> np.ndarray:
        """The enlarged image (height, width, 3) in bytes, with the chosen patches (items,) framed, the others faded."""
        image = self._checked(array("an image", row)[None])
        low, high = image.min(), image.max()
        bright = (image - low) / (high - low if high > low else 1.0)
        bright = bright if image.shape[-1] == 3 else bright.mean(-1, keepdims=True).repeat(3, -1)
        faded = np.where(self._pixels(chosen[None]), bright, (bright + 1) / 3)[0]
        larger = max(1, _ENLARGED // max(image.shape[1:3]))
        picture, side = faded.repeat(larger, 0).repeat(larger, 1), self.size * larger
        for item in np.flatnonzero(chosen):
            top, left = (side * place for place in divmod(int(item), self.grid[1]))
            patch = picture[top : top + side, left : left + side]
            patch[:_FRAME] = patch[-_FRAME:] = patch[:, :_FRAME] = patch[:, -_FRAME:] = _COLOUR
        return (255 * picture).astype(np.uint8)

    def selector(self) -> nn.Module:
        """A convolutional network that adds a local and a global score of each patch."""
        return PatchSelector(self.shape_[2], self.size, self.grid)

    def predictor(self, classes: int) -> nn.Module:
        """A convolutional network on the chosen patches."""
        return PatchPredictor(self.shape_[2], self.size, self.grid, classes)

    @property
    def grid(self) -> tuple[int, int]:
        """Numbers of patches from top to bottom, and from left to right."""
        height, width, _ = self.shape_
        return -(-height // self.size), -(-width // self.size)

    def _pixels(self, chosen: np.ndarray) -> np.ndarray:
        """Flags (n, height, width, 1) of the pixels of the chosen patches (n, items)."""
        height, width, _ = self.shape_
        return chosen.reshape(-1, *self.grid).repeat(self.size, 1).repeat(self.size, 2)[:, :height, :width, None]

    def _checked(self, X: Any) -> np.ndarray:  # noqa: N803
        return same_shape("images", _images(X), self.shape_, "resize them")


def _baseline(baseline: Any) -> float:
    try:
        value = float(baseline)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"baseline must be a number, but got {baseline!r}: pass the value of a pixel") from error
    if not np.isfinite(value):
        raise InvalidValueError(f"baseline must be finite, but got {value}: pass the value of a pixel")
    return value


def _images(X: Any) -> np.ndarray:  # noqa: N803
    images = array("images", X)
    if images.dtype.kind not in "biuf":
        raise InvalidTypeError(f"images must consist of numbers, but got {images.dtype}: convert the pixels to numbers")
    images = images.astype(np.float64)
    if images.ndim not in (3, 4) or images.size == 0:
        raise InvalidValueError(
            f"images must have shape (n, height, width) or (n, height, width, channels), but got {images.shape}: "
            "reshape them"
        )
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] > 4:
        raise InvalidValueError(
            f"images must have their channels last, but {images.shape} looks like (n, channels, height, width): "
            "move them (np.moveaxis(X, 1, -1)), and back in predict_proba"
        )
    if not np.isfinite(images).all():
        raise InvalidValueError("images must be finite, but some pixels are NaN or infinite: fill or drop them")
    return images.reshape(*images.shape[:3], -1)
