"""Classifier by deep stochastic k nearest neighbours, in scikit-learn's form."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from khot._estimators.fitting import find_device, fitting, new_network, training_seed
from khot._estimators.saving import EncoderEstimator
from khot._estimators.scaling import standard_scaling
from khot._estimators.scikit_learn import ClassifierMixin
from khot._estimators.storage import CLASSIFIER
from khot.errors import InvalidValueError
from khot.neighbors import _inputs, _storage, votes
from khot.neighbors._features import check_encoder, features
from khot.neighbors._fitting import check_neighbors, check_parameters, train
from khot.neighbors.networks import build
from khot.neighbors.search import nearest
from khot.sampling import Relaxation
from khot.topk import successive_softmax


@dataclass(kw_only=True, eq=False, repr=False)
class SubsetKNNClassifier(ClassifierMixin, EncoderEstimator):
    """Classify rows by their k nearest neighbours in the features of an encoder that is trained for it.

    In training, each row of a batch draws k neighbours from random candidates by a relaxed sample without replacement,
    where nearer candidates are more likely, and the encoder learns to draw neighbours of the same class. In prediction,
    the k nearest of all reference rows vote, without noise. They are the evidence for it, see `kneighbors`.

    Parameters
    ----------
    n_neighbors : int
        Number of neighbours that vote.
    temperature : float or callable
        Temperature of the relaxation: a number, or a schedule such as those of `khot.schedules`.
    relaxation : callable
        ``f(keys, k, temperature)``; `khot.neuralsort` for the method of Grover et al.
    n_candidates : int
        Number of candidates in a training step, of all processes together; at most all training rows are used.
    encoder : {"mlp", "convnet", "resnet"} or nn.Module
        From float32 rows (b, d), or images (b, channels, height, width), to features (b, f); "mlp" is for tables, the
        others are for images. A module is copied before it is trained.
    epochs, batch_size, learning_rate, optimizer
        As in `khot.training.Settings`. With fewer training rows than `batch_size`, all of them are the batch. The
        default optimizer is Adam. Batches and candidates are cut to a multiple of `devices`.
    validation_share : float
        Share of the rows that is held out to measure the accuracy after every epoch. The weights of the best epoch are
        kept; among equally good epochs, and with a share of 0, the training loss decides.
    augment : {"none", "crop", "flip", "both"}
        Move images at random by up to an eighth of their size, mirror half of them, or both, in every step.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device.
    devices : int
        Number of processes to train with, see `khot.training.fit`. The result is that of one process, up to rounding,
        if the encoder has neither batch normalisation nor dropout.
    precision : {"32-true", "bf16-mixed", "16-mixed"}
        Precision of the encoder in training.
    random_state : int, RandomState or None
        Determines the initial weights, the batches, the candidates and the noise.
    verbose : bool
        Print loss and validation accuracy after every epoch.
    folder : path, optional
        Folder in which the training is kept, so that it can be resumed. By default nothing is kept. A folder is for a
        single training: do not pass one in cross-validation and searches.
    resume : bool
        Continue the training in `folder`. Needs an int as `random_state`.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    encoder_ : nn.Module
        The trained encoder.
    references_ : Tensor, shape (n, f)
        Features of the reference rows: those of `fit`, validation rows included, then those that were added.
    reference_labels_ : ndarray of int64, shape (n,)
        Their labels, as indices of `classes_`.
    history_ : list of dict
        Loss and validation accuracy of every epoch.
    best_epoch_ : int
        Epoch, from 0, whose weights were kept. Not available after `load`.
    n_features_in_, feature_names_in_
        As in scikit-learn; the latter only if X was a table with names.

    Examples
    --------
    >>> import khot
    >>> from khot.neighbors import SubsetKNNClassifier
    >>> digits = khot.datasets.load("digits")
    >>> model = SubsetKNNClassifier(encoder="convnet", epochs=2, random_state=0)
    >>> model = model.fit(digits.train.inputs, digits.train.labels)
    >>> model.score(digits.test.inputs, digits.test.labels) > 0.9
    True
    >>> distances, rows = model.kneighbors(digits.test.inputs[:1])
    >>> digits.test.labels[:1], digits.train.labels[rows]
    (array([1]), array([[1, 1, 1, 1, 1, 1, 1, 1, 1]]))

    Notes
    -----
    Every column of a table and every channel of images is scaled to mean 0 and variance 1 over the rows of `fit`, so
    images of uint8 need no preparation.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
    """

    n_neighbors: int = field(default=9, kw_only=False)
    temperature: Any = 1.0
    relaxation: Relaxation = successive_softmax
    n_candidates: int = 100
    encoder: str | nn.Module = "mlp"
    epochs: int = 20
    batch_size: int = 100
    validation_share: float = 0.1
    augment: str = "none"
    precision: str = "32-true"

    _kind = CLASSIFIER
    best_epoch_: int = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    references_: torch.Tensor = field(init=False)
    reference_labels_: NDArray[np.int64] = field(init=False)
    shape_: tuple[int, ...] = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Train the encoder, and keep the rows as references.

        Parameters
        ----------
        X : array or Tensor, shape (n, d), (n, height, width) or (n, height, width, channels)
            Rows.
        y : array or Tensor, shape (n,)
            Labels: numbers, booleans or texts of at least two classes.

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
            X, y = _inputs.training_rows(self, X, y)  # noqa: N806
            check_parameters(self, X)
            classes, labels = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise InvalidValueError(
                    f"y must have at least two classes, but got one class, {classes[0].item()!r}: add another"
                )
            seed, scaling = training_seed(self, folder), standard_scaling(X)
            module = new_network(seed, lambda: build(self.encoder, X.shape[1:]))
            check_encoder(module, X, scaling)
            run = train(self, module, X, labels, scaling, seed, folder)
            self._keep(module.to(find_device(self.device)), scaling, run.history)
            self.references_ = features(module, X, scaling)
            self.classes_, self.reference_labels_ = classes, labels
            self.shape_, self.best_epoch_ = X.shape[1:], run.best["epoch"]
        return self

    def kneighbors(self, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:  # noqa: N803
        """Find the nearest reference rows, on which predictions are based.

        Parameters
        ----------
        X : array or Tensor, shape (q, ...)
            Rows as in `fit`.
        n_neighbors : int, optional
            Number of neighbours; by default those that vote.
        return_distance : bool
            Whether to return the distances as well.

        Returns
        -------
        distances : ndarray of float32, shape (q, n_neighbors)
            Euclidean distances between features, the nearest first.
        indices : ndarray of int64, shape (q, n_neighbors)
            Reference rows: those of `fit` in their order, then those that were added. Of references at equal
            distances, the smaller index comes first.

        Notes
        -----
        The last bits of features, and so of distances, can depend on how many rows are passed together.
        """
        check_is_fitted(self, "references_")
        queries = features(self.encoder_, _inputs.rows(self, X), self.scaling_)
        k = check_neighbors(self.n_neighbors if n_neighbors is None else n_neighbors, len(self.references_))
        device = find_device(self.device) if find_device(self.device).type == "cuda" else "cpu"  # mps has no float64
        distances, indices = nearest(queries.to(device), self.references_.to(device), k)
        found = distances.cpu().numpy(), indices.cpu().numpy()
        return found if return_distance else found[1]

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Predict the label that most neighbours of each row have.

        Among labels with equally many votes, the one with the nearest neighbour wins, then the smallest.

        Parameters
        ----------
        X : array or Tensor, shape (q, ...)
            Rows as in `fit`.

        Returns
        -------
        ndarray, shape (q,)
            Labels.
        """
        return self.vote(*self.kneighbors(X))

    def vote(self, distances: NDArray[np.float32], indices: NDArray[np.int64]) -> np.ndarray:
        """Predict labels from neighbours that `kneighbors` found.

        Parameters
        ----------
        distances, indices : ndarray, shape (q, n_neighbors)
            Results of `kneighbors`.

        Returns
        -------
        ndarray, shape (q,)
            Labels that `predict` would return.
        """
        return self.classes_[votes.winners(self.reference_labels_[indices], distances, len(self.classes_))]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Compute the share of the votes for each label.

        Among labels with equally many votes, the one that `predict` chooses gets 1e-9 more, so that it is the largest.

        Parameters
        ----------
        X : array or Tensor, shape (q, ...)
            Rows as in `fit`.

        Returns
        -------
        ndarray of float64, shape (q, classes)
            In the order of `classes_`.
        """
        return self.shares(*self.kneighbors(X))

    def shares(self, distances: NDArray[np.float32], indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute the shares of the votes of neighbours that `kneighbors` found.

        Parameters
        ----------
        distances, indices : ndarray, shape (q, n_neighbors)
            Results of `kneighbors`.

        Returns
        -------
        ndarray of float64, shape (q, classes)
            Shares that `predict_proba` would return.
        """
        return votes.decided_shares(self.reference_labels_[indices], distances, len(self.classes_))

    def evidence(
        self, distances: NDArray[np.float32], indices: NDArray[np.int64]
    ) -> Iterator[tuple[int, int, int, float, Any]]:
        """List neighbours that `kneighbors` found, for a table.

        Parameters
        ----------
        distances, indices : ndarray, shape (q, n_neighbors)
            Results of `kneighbors`.

        Yields
        ------
        tuple
            The row, the rank of the neighbour from 1, its index among the references, its distance and its label.
        """
        labels = self.classes_[self.reference_labels_[indices]]
        for row, rank in np.ndindex(indices.shape):
            yield row, rank + 1, int(indices[row, rank]), float(distances[row, rank]), labels[row, rank]

    def add_references(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Add reference rows, also of new classes, without training.

        Parameters
        ----------
        X : array or Tensor, shape (n, ...)
            Rows as in `fit`.
        y : array or Tensor, shape (n,)
            Labels of the same kind as in `fit`.

        Returns
        -------
        self
            This estimator.
        """
        check_is_fitted(self, "references_")
        X, y = _inputs.more_rows(self, X, y)  # noqa: N806
        labels = _inputs.joined_labels(self.classes_[self.reference_labels_], y)
        self.references_ = torch.cat([self.references_, features(self.encoder_, X, self.scaling_)])
        self.classes_, self.reference_labels_ = np.unique(labels, return_inverse=True)
        return self

    def _state(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        return _storage.state(self)

    def _restore(self, numbers: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        _storage.restore(self, numbers, tensors)

    def _build(self) -> nn.Module:
        return build(self.encoder, self.shape_)
