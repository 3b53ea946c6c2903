"""Loading of an embedding of either class."""

from pathlib import Path

from torch import nn

from khot._estimators.storage import EMBEDDING, read_numbers
from khot.embed.parametric_tsne import ParametricTSNE
from khot.embed.subset_sne import SubsetSNE


def load(path: Path | str, encoder: nn.Module | None = None, device: str = "cpu") -> SubsetSNE | ParametricTSNE:
    """Read an embedding that was saved, whichever class it has.

    Parameters
    ----------
    path, encoder, device
        As in `SubsetSNE.load`.

    Returns
    -------
    SubsetSNE or ParametricTSNE
        The saved embedding.

    Raises
    ------
    ModelFileError
        If the folder holds no embedding, or a damaged one, or if the encoder does not fit.
    """
    kind = ParametricTSNE if read_numbers(Path(path), EMBEDDING).get("estimator") == "ParametricTSNE" else SubsetSNE
    return kind.load(path, encoder, device)
