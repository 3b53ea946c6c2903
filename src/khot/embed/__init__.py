"""Neighbour embeddings: an encoder into a few dimensions that preserves the neighbours of every row."""

from khot.embed import quality
from khot.embed.loading import load
from khot.embed.logits import input_logits
from khot.embed.losses import subset_sne_loss, tsne_loss
from khot.embed.networks import SigmoidNet
from khot.embed.parametric_tsne import ParametricTSNE
from khot.embed.subset_sne import TUNED, SubsetSNE

__all__ = [
    "TUNED",
    "ParametricTSNE",
    "SigmoidNet",
    "SubsetSNE",
    "input_logits",
    "load",
    "quality",
    "subset_sne_loss",
    "tsne_loss",
]
