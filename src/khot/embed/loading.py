"""Read an embedding of either kind from its folder."""

from pathlib import Path

from torch import nn

from khot._estimators.storage import read_numbers
from khot.embed._storage import KIND
from khot.embed.parametric_tsne import ParametricTSNE
from khot.embed.subset_sne import SubsetSNE


def load(path: Path | str, encoder: nn.Module | None = None, device: str = "cpu") -> SubsetSNE | ParametricTSNE:
    """Read an embedding that was saved, whichever it is.

    Parameters
    ----------
    path, encoder, device
        As in `SubsetSNE.load`.

    Returns
    -------
    SubsetSNE or ParametricTSNE
        What was saved.

    Raises
    ------
    ModelFileError
        If the folder holds no embedding, or a damaged one, or the encoder does not fit.
    """
    kind = ParametricTSNE if read_numbers(Path(path), KIND).get("estimator") == "ParametricTSNE" else SubsetSNE
    return kind.load(path, encoder, device)
