"""The base class of both embeddings: a scikit-learn transformer with a trained encoder."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from khot._estimators.fitting import find_device, fitting, new_network, training_seed
from khot._estimators.saving import EncoderEstimator
from khot._estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from khot._estimators.storage import EMBEDDING
from khot.embed import _inputs
from khot.embed._fitting import check_parameters, train
from khot.embed._objective import BatchLoss, Objective
from khot.embed._scaling import learn_scaling, principal_axes
from khot.embed.networks import build, check_output


@dataclass(kw_only=True, eq=False, repr=False)
class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EncoderEstimator):
    """Base of the estimators with the parameters of both; each of them defines its objective."""

    n_components: int = field(default=2, kw_only=False)
    scale: str = "auto"
    perplexity: float = 30.0
    input_components: int | None = None
    encoder: str | nn.Module = "small"
    pretrain: bool = True
    pretrain_epochs: int = 10
    dropout: float = 0.0
    batch_size: int = 1000
    epochs: int = 200

    _kind = EMBEDDING
    n_features_in_: int = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Train the encoder.

        Parameters
        ----------
        X : array, sparse array or Tensor, shape (n, d)
            Rows of numbers. A memory-mapped array is read one batch at a time, and a sparse array becomes dense one
            batch at a time.
        y
            Not used.

        Returns
        -------
        self
            This estimator.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            For input that cannot be used.
        DivergedError, RunFolderError
            As in `khot.training.fit`.
        """
        with fitting(self) as folder:
            X = _inputs.checked(self, X, reset=True)  # noqa: N806
            batch = check_parameters(self, X.shape[0])
            objective = self._objective(batch)
            seed = training_seed(self, folder / "embedding", folder / "pretraining")
            scaling = learn_scaling(X, self.scale, getattr(self, "feature_names_in_", None))
            module = new_network(seed, lambda: build(self.encoder, X.shape[1], self.n_components))
            check_output(module, X.shape[1], self.n_components)
            objective = Objective(objective, principal_axes(X, scaling, self.input_components))
            run = train(self, module, X, BatchLoss(objective, scaling, seed, float(self.dropout)), batch, folder)
            self._keep(module.to(find_device(self.device)).eval(), scaling, run.history)
            self._n_features_out = self.n_components
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Embed rows, also rows that were not in `fit`.

        Parameters
        ----------
        X : array, sparse array or Tensor, shape (n, d)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of float32, shape (n, n_components)
            Points. Each depends on its own row only.
        """
        check_is_fitted(self, "encoder_")
        return _inputs.embed(self.encoder_, _inputs.checked(self, X, reset=False), self.scaling_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _objective(self, batch: int) -> Any:
        """Function of (rows, embeddings, temperature, generator) to minimise, for batches of `batch` rows.

        It refuses parameters that only this estimator has.
        """
        raise NotImplementedError

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        features, components = self.n_features_in_, int(self._n_features_out)
        return {"estimator": type(self).__name__, "features": features, "components": components}, {}

    def _restore(self, numbers: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.n_features_in_, self._n_features_out = numbers["features"], numbers["components"]

    def _build(self) -> nn.Module:
        return build(self.encoder, self.n_features_in_, self._n_features_out)
