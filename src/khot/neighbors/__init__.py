"""Deep stochastic k nearest neighbours: an encoder trained so that the neighbours of a row have its label."""

from khot.neighbors.estimator import SubsetKNNClassifier
from khot.neighbors.losses import neighbor_logits, neighbor_loss
from khot.neighbors.networks import MLP, ConvNet, ResNet, with_head
from khot.neighbors.search import nearest

__all__ = [
    "MLP",
    "ConvNet",
    "ResNet",
    "SubsetKNNClassifier",
    "nearest",
    "neighbor_logits",
    "neighbor_loss",
    "with_head",
]
