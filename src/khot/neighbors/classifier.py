"""The scikit-learn face of deep stochastic k nearest neighbours."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from khot._estimators.fitting import draw_seed, find_device, fitting
from khot.errors import InvalidTypeError, InvalidValueError
from khot.neighbors import _inputs, votes
from khot.neighbors import _storage as storage
from khot.neighbors._fitting import check_neighbors, check_parameters, train
from khot.neighbors.embedding import embed
from khot.neighbors.encoders import build
from khot.neighbors.scaling import Scaling, learn_scaling
from khot.neighbors.search import nearest
from khot.sampling import Relaxation
from khot.topk import successive_softmax


class SubsetKNNClassifier(ClassifierMixin, BaseEstimator):
    """Classify rows by their k nearest neighbours in the features of an encoder that was trained for it.

    In training, each row of a batch draws k neighbours from random candidates by a relaxed sample without replacement,
    nearer ones more likely; the encoder learns to make them neighbours of the same class. In prediction, the k nearest
    of all reference rows vote, without noise. They also are the evidence: `kneighbors` tells which rows they were.

    Parameters
    ----------
    n_neighbors : int
        Neighbours that vote.
    temperature : float or callable
        Of the relaxation: a number, or a schedule such as those of `khot.schedules`.
    relaxation : callable
        ``f(keys, k, temperature)``; `khot.neuralsort` for the method of Grover et al.
    n_candidates : int
        Candidates in a training step, of all processes together; with fewer training rows, all of those.
    encoder : {"mlp", "convnet", "resnet"} or nn.Module
        From float32 rows (b, d), or images (b, channels, height, width), to features (b, f); "mlp" is for tables, the
        others are for images. `fit` trains a copy of a module.
    epochs, batch_size, learning_rate, optimizer
        As in `khot.training.Settings`; with fewer training rows than `batch_size`, all of them are the batch. The
        optimizer is Adam by default. Batches and candidates are cut to a multiple of `devices`.
    validation_share : float
        Share of the rows on which the accuracy is measured after every epoch; the weights of the best epoch are kept.
        Of equally good epochs the one with the best training loss counts, and with a share of 0 that alone.
    augment : {"none", "crop", "flip", "both"}
        Move images by up to an eighth of their size, mirror half of them, or both, anew in every step.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device.
    devices : int
        Number of processes to train with, see `khot.training.fit`. They compute what one does, up to rounding, if the
        encoder has neither batch normalisation nor dropout.
    precision : {"32-true", "bf16-mixed", "16-mixed"}
        Of the encoder in training.
    random_state : int, RandomState or None
        Fixes the weights at the start, the batches, the candidates and the noise.
    verbose : bool
        Print loss and validation accuracy after every epoch.
    folder : path, optional
        Where the training is written to, so that it can be resumed. By default it leaves nothing behind. One folder is
        for one training: leave it out in cross-validation and searches.
    resume : bool
        Go on with the training in `folder`. Needs an int as `random_state`.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    encoder_ : nn.Module
        The trained encoder.
    references_ : Tensor, shape (n, f)
        Features of the reference rows: those given to `fit`, including the validation rows, then those added.
    reference_labels_ : ndarray of int64, shape (n,)
        Their labels, as numbers of `classes_`.
    history_ : list of dict
        Loss and validation accuracy of every epoch.
    best_epoch_ : int
        The epoch, from 0, whose weights were kept; not after `load`.
    n_features_in_, feature_names_in_
        As usual; the latter only if X was a table with names.

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
    Every column of a table and every channel of images is shifted and scaled to mean 0 and variance 1 over the rows
    given to `fit`, so uint8 images may come as they are.

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
    """

    def __init__(
        self,
        n_neighbors: int = 9,
        *,
        temperature: Any = 1.0,
        relaxation: Relaxation = successive_softmax,
        n_candidates: int = 100,
        encoder: str | nn.Module = "mlp",
        epochs: int = 20,
        batch_size: int = 100,
        learning_rate: Any = 1e-3,
        optimizer: Any = None,
        validation_share: float = 0.1,
        augment: str = "none",
        device: str = "cpu",
        devices: int = 1,
        precision: str = "32-true",
        random_state: Any = None,
        verbose: bool = False,
        folder: Path | str | None = None,
        resume: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.temperature = temperature
        self.relaxation = relaxation
        self.n_candidates = n_candidates
        self.encoder = encoder
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.validation_share = validation_share
        self.augment = augment
        self.device = device
        self.devices = devices
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.folder = folder
        self.resume = resume

    def fit(self, X: Any, y: Any) -> "SubsetKNNClassifier":  # noqa: N803
        """Train the encoder, and take the rows as references.

        Parameters
        ----------
        X : array or Tensor, shape (n, d), (n, height, width) or (n, height, width, channels)
            Rows.
        y : array or Tensor, shape (n,)
            Labels: numbers, booleans or texts, at least two of them different.

        Returns
        -------
        SubsetKNNClassifier
            Itself.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            For input that cannot be used.
        DivergedError, RunFolderError
            As `khot.training.fit`.
        """
        with fitting(self) as folder:
            X, y = _inputs.training_rows(self, X, y)  # noqa: N806
            check_parameters(self, X)
            classes, labels = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise InvalidValueError(
                    f"y must have at least two classes, but got one class, {classes[0].item()!r}: add another"
                )
            seed, scaling = draw_seed(self.random_state), learn_scaling(X)
            with torch.random.fork_rng([]):
                torch.manual_seed(seed)
                module = copy.deepcopy(build(self.encoder, X.shape[1:]))
                _try(module, X, scaling)
            run = train(self, module, X, labels, scaling, seed, folder)
            self.history_, self.best_epoch_ = run.history, run.best["epoch"]
            self.references_ = _features(module.to(find_device(self.device)), X, scaling)
            self.classes_, self.shape_, self.scaling_ = classes, X.shape[1:], scaling
            self.encoder_, self.reference_labels_ = module, labels
        return self

    def kneighbors(self, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:  # noqa: N803
        """Tell the nearest reference rows: what a prediction rests on.

        Parameters
        ----------
        X : array or Tensor, shape (q, ...)
            Rows as in `fit`.
        n_neighbors : int, optional
            How many, if not as many as vote.
        return_distance : bool
            Whether to return the distances, too.

        Returns
        -------
        distances : ndarray of float32, shape (q, n_neighbors)
            Euclidean, in the features of the encoder; the nearest first.
        indices : ndarray of int64, shape (q, n_neighbors)
            Reference rows: those of `fit` in their order, then those added. Of equal distances the smaller index first.

        Notes
        -----
        The last bits of features, and so of distances, can depend on how many rows are given together.
        """
        check_is_fitted(self, "references_")
        queries = _features(self.encoder_, _inputs.rows(self, X), self.scaling_)
        k = check_neighbors(self.n_neighbors if n_neighbors is None else n_neighbors, len(self.references_))
        device = find_device(self.device) if find_device(self.device).type == "cuda" else "cpu"  # mps has no float64
        distances, indices = nearest(queries.to(device), self.references_.to(device), k)
        found = distances.cpu().numpy(), indices.cpu().numpy()
        return found if return_distance else found[1]

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Predict the label of each row: that of most neighbours.

        Of labels with equally many votes, that with the nearest neighbour wins, then the smallest.

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
            As `kneighbors` returns them.

        Returns
        -------
        ndarray, shape (q,)
            Labels, as `predict` chooses them.
        """
        return self.classes_[votes.winners(self.reference_labels_[indices], distances, len(self.classes_))]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Tell the share of the votes that each label gets.

        Of labels with equally many votes, the one that `predict` chooses gets 1e-9 more, so that it is the largest.

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
        """Tell the shares of the votes of neighbours that `kneighbors` found.

        Parameters
        ----------
        distances, indices : ndarray, shape (q, n_neighbors)
            As `kneighbors` returns them.

        Returns
        -------
        ndarray of float64, shape (q, classes)
            As `predict_proba` has them.
        """
        return votes.decided_shares(self.reference_labels_[indices], distances, len(self.classes_))

    def evidence(
        self, distances: NDArray[np.float32], indices: NDArray[np.int64]
    ) -> Iterator[tuple[int, int, int, float, Any]]:
        """List neighbours that `kneighbors` found, for a table.

        Parameters
        ----------
        distances, indices : ndarray, shape (q, n_neighbors)
            As `kneighbors` returns them.

        Yields
        ------
        tuple
            The row, the rank of the neighbour from 1, its index among the references, its distance and its label.
        """
        labels = self.classes_[self.reference_labels_[indices]]
        for row, rank in np.ndindex(indices.shape):
            yield row, rank + 1, int(indices[row, rank]), float(distances[row, rank]), labels[row, rank]

    def add_references(self, X: Any, y: Any) -> "SubsetKNNClassifier":  # noqa: N803
        """Add reference rows, also of new classes, without training.

        Parameters
        ----------
        X : array or Tensor, shape (n, ...)
            Rows as in `fit`.
        y : array or Tensor, shape (n,)
            Labels of the kind seen in `fit`.

        Returns
        -------
        SubsetKNNClassifier
            Itself.
        """
        check_is_fitted(self, "references_")
        X, y = _inputs.more_rows(self, X, y)  # noqa: N806
        if _kind(y) != _kind(self.classes_):
            raise InvalidTypeError(
                f"y must have labels of the kind seen in fit, {self.classes_.dtype}, but got {y.dtype}: convert them"
            )
        labels = _joined(self.classes_[self.reference_labels_], y)
        features = _features(self.encoder_, X, self.scaling_)
        self.classes_, self.reference_labels_ = np.unique(labels, return_inverse=True)
        self.references_ = torch.cat([self.references_, features])
        return self

    def save(self, path: Path | str) -> None:
        """Write the fitted classifier into a folder: numbers as JSON, tensors as safetensors.

        Parameters
        ----------
        path : path
            A new or empty folder, or one with a classifier that is to be replaced.

        Raises
        ------
        ModelFileError
            If the folder holds something else.
        """
        check_is_fitted(self, "references_")
        storage.write(Path(path), self)

    @classmethod
    def load(cls, path: Path | str, encoder: nn.Module | None = None, device: str = "cpu") -> "SubsetKNNClassifier":
        """Read a classifier that was saved. It predicts as that one did.

        Parameters
        ----------
        path : path
            The folder.
        encoder : nn.Module, optional
            If the classifier has an encoder of your own, a module of the same make. Its weights are not used.
        device : {"cpu", "cuda", "mps", "auto"}
            Where to predict.

        Returns
        -------
        SubsetKNNClassifier
            With the parameters of the other that are numbers, words or relaxations of khot; other functions, such as
            schedules, are not stored.

        Raises
        ------
        ModelFileError
            If the folder holds no classifier, or a damaged one, or the encoder does not fit.
        """
        return storage.read(Path(path), cls(device=device), encoder)


def _features(module: nn.Module, X: np.ndarray, scaling: Scaling) -> torch.Tensor:  # noqa: N803
    features = embed(module, X, scaling)
    if features.ndim != 2 or len(features) != len(X) or not features.isfinite().all():
        fits = features.ndim == 2 and len(features) == len(X)
        got = "NaN or infinite ones" if fits else f"shape {tuple(features.shape)} for {len(X)} rows"
        hint = "bound its output, or look for extreme rows" if fits else "flatten its output"
        raise InvalidValueError(f"the encoder must return finite features (rows, features), but got {got}: {hint}")
    return features


def _joined(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Both labels in one array, if one dtype has room for all."""
    if old.dtype.kind in "iu" and new.dtype.kind == "f":  # whole numbers: others are no labels
        new = np.array([int(label) for label in new])
    both = np.concatenate([old, new])
    for label, kept in zip(new.tolist(), both[len(old) :].tolist(), strict=True):
        if label != kept or (both.dtype.kind == "f") != (old.dtype.kind == "f"):
            raise InvalidValueError(
                f"y must have labels that go together with those of fit, {old.dtype}, but got {label!r}: convert them"
            )
    return both


def _try(module: nn.Module, X: np.ndarray, scaling: Scaling) -> None:  # noqa: N803
    """Refuse an encoder that cannot be applied to the rows, before it is trained."""
    if not list(module.parameters()):
        return  # the training says so
    try:
        _features(module, X[:2], scaling)
    except InvalidValueError:
        raise
    except Exception as error:
        shape = tuple(scaling(torch.from_numpy(X[:2].copy())).shape)
        raise InvalidValueError(
            f"the encoder must take float32 rows such as those of shape {shape}, but it failed: {error}"
        ) from error


def _kind(labels: np.ndarray) -> str:
    return {"i": "number", "u": "number", "f": "number", "U": "text", "O": "text"}.get(labels.dtype.kind, "other")
