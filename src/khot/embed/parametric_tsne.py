"""Parametric t-SNE, the baseline of the paper."""

from dataclasses import dataclass

from khot._renamed import renamed
from khot.embed._fitting import degrees
from khot.embed._objective import StudentObjective
from khot.embed.estimator import Embedding
from khot.embed.logits import check_perplexity


@renamed(max_epochs="epochs")
@dataclass(kw_only=True, eq=False, repr=False)
class ParametricTSNE(Embedding):
    """t-SNE with an encoder, so that new rows can be embedded too.

    Within a batch, pairs of rows are neighbours with Gaussian probabilities in the input space, whose widths are chosen
    by a perplexity, and with Student-t probabilities in the embedding. The encoder learns to match the two, see
    `tsne_loss`. The weights of the epoch with the best training loss are kept.

    Parameters
    ----------
    n_components : int
        Number of dimensions of the embedding.
    perplexity : float
        Roughly the number of neighbours that matter; less than the number of rows in a batch.
    alpha : float or "auto"
        Degrees of freedom of the Student-t distribution; "auto" is ``n_components - 1``, but at least 1.
    scale : {"auto", "columns", "raw"}
        "auto": the encoder sees rows minus their mean, divided by one standard deviation over all columns. "raw": rows
        as they are, which suits pixels between 0 and 1. This does not change which rows are neighbours. "columns": each
        column is divided by its own standard deviation, which suits columns with different units.
    input_components, encoder, pretrain, pretrain_epochs, dropout
        As in `SubsetSNE`.
    epochs, batch_size, learning_rate, optimizer, device, devices, random_state, verbose, folder, resume
        As in `SubsetSNE`.

    Attributes
    ----------
    encoder_, history_, n_features_in_, feature_names_in_
        As in `SubsetSNE`.

    Examples
    --------
    >>> import khot
    >>> from khot.embed import ParametricTSNE
    >>> digits = khot.datasets.load("digits")
    >>> rows, others = (part.inputs.reshape(-1, 64) for part in (digits.train, digits.test))
    >>> model = ParametricTSNE(batch_size=200, epochs=5, pretrain=False, random_state=0).fit(rows)
    >>> model.transform(others).shape
    (360, 2)

    References
    ----------
    van der Maaten, "Learning a parametric embedding by preserving local structure", AISTATS 2009.
    """

    alpha: float | str = 1.0

    def _objective(self, batch: int) -> StudentObjective:
        return StudentObjective(check_perplexity(self.perplexity, batch), degrees(self.alpha, self.n_components))
