"""Stochastic neighbour embedding by samples of neighbours, the paper's RSS-SNE."""

from pathlib import Path
from typing import Any

from torch import nn

from khot import _checks
from khot._renamed import renamed
from khot.embed._fitting import check_perplexity, degrees
from khot.embed._objective import SubsetObjective
from khot.embed.estimator import Embedding
from khot.embed.losses import NOISES
from khot.errors import InvalidValueError

TUNED: dict[str, Any] = {
    "temperature": 1.0,
    "perplexity": 4.0,
    "alpha": "auto",
    "bias": 0.0,
    "noise": "input",
    "samples": 4,
    "dropout": 0.1,
    "learning_rate": "cycle",
}
"""Parameters of `SubsetSNE` that make better maps than the paper's, which are the defaults."""


@renamed(max_epochs="epochs")
class SubsetSNE(Embedding):
    """Learn an encoder into a few dimensions that keeps the neighbours of every row, and embeds new rows too.

    In a training step, each row of a batch draws a sequence of neighbours in the input space, the nearer the likelier,
    and a relaxed one in the embedding, and the encoder learns to make the second like the first: `subset_sne_loss`. The
    weights of the epoch with the best training loss are kept.

    The defaults are the paper's objective. ``SubsetSNE(**khot.embed.TUNED)`` makes better maps.

    Parameters
    ----------
    n_components : int
        Dimensions of the embedding.
    n_neighbors : int
        Neighbours k that each row draws; the j-th counts exp(1 - j). The paper finds 1 sufficient: more of them keep
        more of the wider surroundings and less of the nearest neighbour.
    temperature : float or callable
        Of the relaxation: a number, or a schedule such as those of `khot.schedules`, of the training step. Under a
        schedule, epochs are compared by the loss of one batch at the last temperature, with the same noise.
    scale : {"auto", "columns", "raw"}
        How far is far in the input space. "auto": each row of a batch counts distances in units of its own, such that
        its neighbour has the given perplexity; and rows enter the encoder minus their mean, divided by their spread,
        one number for all columns. The units of X do not matter then, if all columns have the same. "columns": the
        same, but each column is first divided by its own spread, which suits columns of different units. "raw", the
        paper's: squared distances are taken as they are, which suits rows whose nearest neighbours are at a squared
        distance of a few units, such as pixels between 0 and 1; with larger ones every row only knows its nearest
        neighbour, with smaller ones all rows are neighbours alike.
    perplexity : float
        Unless scale="raw", in a way the number of neighbours that count.
    input_components : int, optional
        Distances in the input space are those of so many principal components of the rows. That leaves out noise, and
        takes less time. By default those of the rows themselves.
    alpha : float or "auto", optional
        Degrees of freedom of the Student-t density that measures the embedding, as in `ParametricTSNE`; by default
        squared distances do, the paper's choice.
    encoder : {"small", "large"} or nn.Module
        From float32 rows (b, d) to (b, n_components). The names are the paper's networks: sigmoid layers of 150, 150
        and 500, or of 500, 500 and 2,000, and a linear one. `fit` trains a copy of a module.
    pretrain : bool
        First train the encoder layer by layer as an autoencoder: layers 1 to l with a linear decoder, for every l. The
        encoder then has to be an `nn.Sequential`.
    pretrain_epochs : int
        Epochs of that for each layer.
    dropout : float
        Share of the numbers of a row that the encoder does not see in a training step: they are set to 0, and the
        others are larger in turn. Neighbours are those of whole rows. New rows then find their place better, where
        rows are few for the size of the network above all.
    bias : float
        Added to the relaxed entries under the logarithm, see `subset_sne_loss`.
    noise : {"both", "input"}
        Whether neighbours are drawn at random in both spaces, as in the paper, or in the input space alone.
    samples : int
        Draws of the noise for each batch.
    mutual : bool
        Whether a row is to be as likely a neighbour of the neighbour that it has drawn; for one neighbour alone. Worth
        a try in two dimensions, where the map of MNIST is more trustworthy for it.
    epochs, batch_size, learning_rate, optimizer
        As in `khot.training.Settings`; with fewer rows than `batch_size`, all of them are the batch. The optimizer is
        Adam by default. Neighbours are drawn within the batch, which is cut to a multiple of `devices`. An epoch has
        ``n // batch_size`` steps: with few rows take smaller batches, or more epochs. The learning rate "cycle" is one
        cycle up to 0.01 over the whole training.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device.
    devices : int
        Number of processes to train with, see `khot.training.fit`. Each has a copy of X, also of a memory-mapped one.
    random_state : int, RandomState or None
        Fixes the weights at the start, the batches and the noise.
    verbose : bool
        Print the mean loss of every epoch.
    folder : path, optional
        Where the training is written to, so that it can be resumed. By default it leaves nothing behind.
    resume : bool
        Go on with the training in `folder`, or with the pretraining there. Needs an int as `random_state`.

    Attributes
    ----------
    encoder_ : nn.Module
        The trained encoder, of rows that `scaling_` has scaled.
    history_ : list of dict
        The mean loss of every epoch.
    n_features_in_, feature_names_in_
        As usual; the latter only if X was a table with names.

    Examples
    --------
    >>> import khot
    >>> from khot.embed import SubsetSNE, quality
    >>> digits = khot.datasets.load("digits")
    >>> rows, others = (part.inputs.reshape(-1, 64) for part in (digits.train, digits.test))
    >>> model = SubsetSNE(batch_size=200, epochs=20, random_state=0).fit(rows)
    >>> model.transform(others).shape
    (360, 2)
    >>> quality.trustworthiness(others, model.transform(others)) > 0.8
    True

    Notes
    -----
    There is no `partial_fit`: which epoch is the best, and the schedules, are questions about a whole training.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Section 4.3.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 1,
        temperature: Any = 0.1,
        scale: str = "auto",
        perplexity: float = 30.0,
        input_components: int | None = None,
        alpha: float | str | None = None,
        encoder: str | nn.Module = "small",
        pretrain: bool = True,
        pretrain_epochs: int = 10,
        dropout: float = 0.0,
        bias: float = 1e-8,
        noise: str = "both",
        samples: int = 1,
        mutual: bool = False,
        batch_size: int = 1000,
        epochs: int = 200,
        learning_rate: Any = 1e-3,
        optimizer: Any = None,
        device: str = "cpu",
        devices: int = 1,
        random_state: Any = None,
        verbose: bool = False,
        folder: Path | str | None = None,
        resume: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.temperature = temperature
        self.scale = scale
        self.perplexity = perplexity
        self.input_components = input_components
        self.alpha = alpha
        self.encoder = encoder
        self.pretrain = pretrain
        self.pretrain_epochs = pretrain_epochs
        self.dropout = dropout
        self.bias = bias
        self.noise = noise
        self.samples = samples
        self.mutual = mutual
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.device = device
        self.devices = devices
        self.random_state = random_state
        self.verbose = verbose
        self.folder = folder
        self.resume = resume

    def _check(self, batch: int) -> None:
        if _checks.whole_number("n_neighbors", self.n_neighbors, least=1) > batch - 1:
            raise InvalidValueError(
                f"n_neighbors must be at most {batch - 1}, one less than the rows of a batch, "
                f"but got {self.n_neighbors}: choose fewer neighbours, or larger batches"
            )
        if self.scale != "raw":
            check_perplexity(self.perplexity, batch)
        if _checks.not_negative("bias", self.bias) == 0 and self.n_neighbors > 1:
            raise InvalidValueError(
                f"bias can be 0 for one neighbour alone, but got n_neighbors = {self.n_neighbors}: pass 1e-8, say"
            )
        if _checks.flag("mutual", self.mutual) and self.n_neighbors > 1:
            raise InvalidValueError(
                f"mutual is for one neighbour alone, but got n_neighbors = {self.n_neighbors}: pass one of both"
            )
        if self.alpha is not None:
            degrees(self.alpha, self.n_components)
        _checks.choice("noise", self.noise, NOISES)
        _checks.whole_number("samples", self.samples, least=1)

    def _objective(self) -> SubsetObjective:
        perplexity = None if self.scale == "raw" else self.perplexity
        alpha = None if self.alpha is None else degrees(self.alpha, self.n_components)
        return SubsetObjective(
            self.n_neighbors, perplexity, alpha, self.bias, self.noise, self.samples, bool(self.mutual)
        )
