"""What the embeddings have in common: a scikit-learn transformer with a trained encoder."""

import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from khot._estimators.fitting import draw_seed, find_device, fitting
from khot.embed import _rows, _storage
from khot.embed._fitting import check_parameters, train
from khot.embed._training import Objective
from khot.embed.encoders import build, check_output


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators, which store their parameters and know their objective."""

    n_components: int
    scale: str
    input_components: int | None
    encoder: str | nn.Module
    device: str
    random_state: Any
    folder: Path | str | None
    feature_names_in_: NDArray[Any]

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Train the encoder.

        Parameters
        ----------
        X : array, sparse array or Tensor, shape (n, d)
            Rows of numbers. A memory-mapped array is read a batch at a time, a sparse one made dense a batch at a time.
        y
            Not used.

        Returns
        -------
        SubsetSNE or ParametricTSNE
            Itself.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            For input that cannot be used.
        DivergedError, RunFolderError
            As `khot.training.fit`.
        """
        with fitting(self) as folder:
            X = _rows.checked(self, X, reset=True)  # noqa: N806
            batch = check_parameters(self, X.shape[0])
            self._check(batch)
            seed = draw_seed(self.random_state)
            shift = _rows.learn_shift(X, self.scale, getattr(self, "feature_names_in_", None))
            with torch.random.fork_rng([]):
                torch.manual_seed(seed)
                module = copy.deepcopy(build(self.encoder, X.shape[1], self.n_components))
            check_output(module, X.shape[1], self.n_components)
            objective = Objective(self._objective(), _rows.principal_axes(X, shift, self.input_components))
            run = train(self, module, X, shift, objective, batch, seed, folder)
            self.shift_, self.history_, self._n_features_out = shift, run.history, self.n_components
            self.encoder_ = module.to(find_device(self.device)).eval()
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Embed rows, also such as were not in `fit`.

        Parameters
        ----------
        X : array, sparse array or Tensor, shape (n, d)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of float32, shape (n, n_components)
            Points. What is in the other rows of X does not matter.
        """
        check_is_fitted(self, "encoder_")
        X = _rows.checked(self, X, reset=False)  # noqa: N806
        return _rows.embed(self.encoder_, X, self.shift_, find_device(self.device))

    def save(self, path: Path | str) -> None:
        """Write the fitted embedding into a folder: numbers as JSON, tensors as safetensors.

        Parameters
        ----------
        path : path
            A new or empty folder, or one with an embedding that is to be replaced.

        Raises
        ------
        ModelFileError
            If the folder holds something else.
        """
        check_is_fitted(self, "encoder_")
        _storage.write(Path(path), self)

    @classmethod
    def load(cls, path: Path | str, encoder: nn.Module | None = None, device: str = "cpu") -> Self:
        """Read an embedding that was saved. Its `transform` is the same, bit for bit.

        Parameters
        ----------
        path : path
            The folder.
        encoder : nn.Module, optional
            If the embedding has an encoder of your own, a module of the same make. Its weights are not used.
        device : {"cpu", "cuda", "mps", "auto"}
            Where to embed.

        Returns
        -------
        SubsetSNE or ParametricTSNE
            With the parameters of the other that are numbers or words; functions, such as schedules, are not stored.

        Raises
        ------
        ModelFileError
            If the folder holds no embedding of this class, or a damaged one, or the encoder does not fit.
        """
        return _storage.read(Path(path), cls().set_params(device=device), encoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _objective(self) -> Any:
        """A function of (rows, embeddings, temperature, generator)."""
        raise NotImplementedError

    def _check(self, batch: int) -> None:
        """Refuse parameters of this estimator alone, for batches of so many rows."""
        raise NotImplementedError
