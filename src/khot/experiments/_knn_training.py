"""Losses and accuracies of the methods in the table of neighbour classifiers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from khot._estimators.encoding import encode_array
from khot._estimators.scaling import Scaling
from khot.datasets import Dataset, Rows
from khot.neighbors import votes
from khot.neighbors.augmentation import augmented
from khot.neighbors.losses import neighbor_logits
from khot.neighbors.search import nearest
from khot.neighbors.validation import Validation
from khot.sampling import sample_subset
from khot.topk import neuralsort, successive_softmax
from khot.training import Step

METHODS = ("subset", "neuralsort", "cnn")

_RESIZED = 5000  # images that are resized together

Labelled = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class _BatchLoss:
    """Negative share of right labels among k relaxed neighbours of each image, from groups of its batch.

    A group has `candidates` images. In its own group, an image has one candidate fewer.
    """

    scaling: Scaling = field(repr=False)
    augment: str
    relaxation: Any
    samples: int
    k: int
    candidates: int

    def __call__(self, module: nn.Module, batch: tuple[Tensor, Tensor], step: Step) -> Tensor:
        images, labels = batch
        features = module(_prepared(images, self.scaling, self.augment, step))
        parts = (-1, self.candidates)
        logits = neighbor_logits(features, features, torch.eye(len(images), dtype=torch.bool)).unflatten(1, parts)
        right = (labels[:, None] == labels).unflatten(1, parts)
        repeated = logits.expand(self.samples, *logits.shape)
        chosen = sample_subset(repeated, self.k, step.temperature, relaxation=self.relaxation, generator=step.generator)
        return -(chosen * right).sum(-1).mean() / self.k


@dataclass(frozen=True)
class _CrossEntropy:
    scaling: Scaling = field(repr=False)
    augment: str

    def __call__(self, module: nn.Module, batch: tuple[Tensor, Tensor], step: Step) -> Tensor:
        images, labels = batch
        return functional.cross_entropy(module(_prepared(images, self.scaling, self.augment, step)), labels)


def loss_of(method: str, scaling: Scaling, augment: str, samples: int, k: int, candidates: int) -> Callable:
    """Loss of a method."""
    if method == "cnn":
        return _CrossEntropy(scaling, augment)
    relaxation = successive_softmax if method == "subset" else neuralsort
    return _BatchLoss(scaling, augment, relaxation, samples, k, candidates)


@dataclass(frozen=True)
class _HeadValidation:
    """Accuracy of a network with a head on held-out images."""

    inputs: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    scaling: Scaling = field(repr=False)

    def __call__(self, module: nn.Module) -> dict[str, float]:
        logits = encode_array(module, self.inputs, self.scaling)
        return {"accuracy": float((logits.argmax(1).numpy() == self.labels).mean())}


def validation_of(method: str, held_out: Labelled, references: Labelled, scaling: Scaling, k: int) -> Callable:
    """Accuracy on held-out images, as a function that is called after an epoch."""
    if method == "cnn":
        return _HeadValidation(*held_out, scaling)
    return Validation(*held_out, *references, scaling, k)


@dataclass(frozen=True)
class Votes:
    """Votes in a test: neighbours (q, k) of each test image among the training images, and predictions (q,)."""

    data: Dataset
    neighbors: np.ndarray
    predictions: np.ndarray


def classify(
    method: str, module: nn.Module, data: Dataset, scaling: Scaling, k: int, mirrored: bool
) -> tuple[float, Votes | None]:
    """Accuracy on the test images, and the votes of neighbours, if the method has any.

    All training images vote, including those that were held out in training. If `mirrored`, outputs of the network are
    means over an image and its mirror image.
    """

    def means(rows: Rows) -> Tensor:
        images = as_images(rows)
        found = encode_array(module, images, scaling)
        return (found + encode_array(module, images[:, :, ::-1], scaling)) / 2 if mirrored else found

    if method == "cnn":
        predictions, voted = means(data.test).argmax(1).numpy(), None
    else:
        distances, neighbors = (found.numpy() for found in nearest(means(data.test), means(data.train), k))
        predictions = votes.winners(data.train.labels[neighbors], distances, len(data.classes))
        voted = Votes(data, neighbors, predictions)
    return float((predictions == data.test.labels).mean()), voted


def as_images(rows: Rows) -> np.ndarray:
    """Images (n, height, width, channels)."""
    return rows.inputs.reshape(*rows.inputs.shape[:3], -1)


def resized(images: np.ndarray, pixels: int) -> np.ndarray:
    """Images (n, height, width, channels) resized to (n, pixels, pixels, channels)."""
    if images.shape[1] == pixels:
        return images
    resized = []
    for piece in torch.from_numpy(images).split(_RESIZED):
        floats = piece.permute(0, 3, 1, 2).float()
        small = functional.interpolate(floats, size=(pixels, pixels), mode="bilinear", antialias=True)
        resized.append(small.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(resized)


def _prepared(images: Tensor, scaling: Scaling, augment: str, step: Step) -> Tensor:
    draws = torch.rand(len(images), 3, generator=step.generator, device=images.device)
    return scaling(augmented(images, draws, augment))
