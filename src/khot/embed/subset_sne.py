"""Stochastic neighbour embedding by subset sampling, the RSS-SNE of the paper."""

from dataclasses import dataclass
from typing import Any

from khot._renamed import renamed
from khot.embed._fitting import degrees
from khot.embed._objective import SubsetObjective
from khot.embed.estimator import Embedding
from khot.embed.logits import check_perplexity
from khot.embed.losses import check_sampling

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
"""Parameters of `SubsetSNE` that give better maps than the defaults, which are the paper's."""


@renamed(max_epochs="epochs")
@dataclass(kw_only=True, eq=False, repr=False)
class SubsetSNE(Embedding):
    """Learn an encoder into a few dimensions that preserves the neighbours of every row, and can embed new rows too.

    In a training step, each row of a batch draws a sequence of neighbours in the input space, where nearer rows are
    more likely, and a relaxed sequence in the embedding. The encoder learns to match the two, see `subset_sne_loss`.
    The weights of the epoch with the best training loss are kept.

    The defaults are the paper's objective. ``SubsetSNE(**khot.embed.TUNED)`` gives better maps.

    Parameters
    ----------
    n_components : int
        Number of dimensions of the embedding.
    n_neighbors : int
        Number k of neighbours that each row draws; the j-th has weight exp(1 - j). The paper finds 1 to be sufficient:
        more neighbours preserve more of the wider neighbourhood and less of the nearest neighbour.
    temperature : float or callable
        Temperature of the relaxation: a number, or a function of the training step such as those of `khot.schedules`.
        With a schedule, epochs are compared by the loss of one batch at the last temperature, with the same noise.
    scale : {"auto", "columns", "raw"}
        Scale of distances in the input space. "auto": distances of each row of a batch are scaled so that its neighbour
        has the given perplexity, and the encoder sees rows minus their mean, divided by one standard deviation over all
        columns; the unit of X does not matter if all columns share it. "columns": the same after each column is divided
        by its own standard deviation, which suits columns with different units. "raw", as in the paper: squared
        distances as they are, which suits rows whose nearest neighbours are at a squared distance of a few units, such
        as pixels between 0 and 1; with larger distances only the nearest neighbour of a row matters, and with smaller
        ones all rows are equally likely neighbours.
    perplexity : float
        Roughly the number of neighbours that matter. Not used with scale="raw".
    input_components : int, optional
        Number of principal components of the rows between which distances in the input space are computed, which leaves
        out noise and takes less time. By default all columns are used.
    alpha : float or "auto", optional
        Degrees of freedom of the Student-t density in the embedding, as in `ParametricTSNE`. By default log-weights are
        negative squared distances, as in the paper.
    encoder : {"small", "large"} or nn.Module
        From float32 rows (b, d) to (b, n_components). The names are the paper's networks: sigmoid layers of 150, 150
        and 500, or of 500, 500 and 2,000, and a linear one. A module is copied before it is trained.
    pretrain : bool
        Whether to train the encoder layer by layer as an autoencoder: layers 1 to l with a linear decoder, for every l,
        before the main training. The encoder then has to be an `nn.Sequential`.
    pretrain_epochs : int
        Number of epochs of the pretraining for each layer.
    dropout : float
        Share of the inputs of the encoder that are set to 0 in a training step, while the others are scaled up.
        Neighbours are always those of complete rows. It improves the places of new rows, most of all if there are few
        rows for the size of the network.
    bias : float
        Number that is added to the relaxed entries under the logarithm, see `subset_sne_loss`.
    noise : {"both", "input"}
        Whether neighbours are drawn at random in both spaces, as in the paper, or in the input space only.
    samples : int
        Number of draws of the noise for each batch.
    mutual : bool
        Whether a row should also be a likely neighbour of the neighbour that it draws; only for n_neighbors=1. Worth a
        try in two dimensions, where it makes the map of MNIST more trustworthy.
    epochs, batch_size, learning_rate, optimizer
        As in `khot.training.Settings`. With fewer rows than `batch_size`, all of them are the batch. The default
        optimizer is Adam. Neighbours are drawn within the batch, which is cut to a multiple of `devices`. An epoch has
        ``n // batch_size`` steps: with few rows, choose smaller batches or more epochs. The learning rate "cycle" is
        one cycle up to 0.01 over the whole training.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device.
    devices : int
        Number of processes, see `khot.training.fit`. Each process has a copy of X, even of a memory-mapped one.
    random_state : int, RandomState or None
        Determines the initial weights, the batches and the noise.
    verbose : bool
        Whether to print the mean loss of each epoch.
    folder : path, optional
        Folder in which the training is kept, so that it can be resumed. By default nothing is kept.
    resume : bool
        Continue the training or pretraining in `folder`. Needs an int as `random_state`.

    Attributes
    ----------
    encoder_ : nn.Module
        The trained encoder, for rows scaled by `scaling_`.
    history_ : list of dict
        Mean loss of every epoch.
    n_features_in_, feature_names_in_
        As in scikit-learn; the latter only if X was a table with names.

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
    There is no `partial_fit`, because the best epoch and the schedules refer to a whole training.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019, Section 4.3.
    """

    n_neighbors: int = 1
    temperature: Any = 0.1
    alpha: float | str | None = None
    bias: float = 1e-8
    noise: str = "both"
    samples: int = 1
    mutual: bool = False

    def _objective(self, batch: int) -> SubsetObjective:
        options = {"noise": self.noise, "samples": self.samples, "bias": self.bias, "mutual": self.mutual}
        check_sampling("n_neighbors", self.n_neighbors, batch, **options)
        perplexity = None if self.scale == "raw" else check_perplexity(self.perplexity, batch)
        alpha = None if self.alpha is None else degrees(self.alpha, self.n_components)
        return SubsetObjective(
            self.n_neighbors, perplexity, alpha, self.bias, self.noise, self.samples, bool(self.mutual)
        )
