"""The estimator that explains a model by the k items of a row that are most informative."""

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from khot._estimators.fitting import fitting
from khot._estimators.scikit_learn import BaseEstimator
from khot.errors import InvalidValueError
from khot.explain import _inputs, _storage
from khot.explain._fitting import about, ask, check_parameters, choices_per_row, train
from khot.explain._module import Explainer
from khot.explain.black_box import BlackBox, PredictProba
from khot.explain.explanation import Explanation
from khot.explain.maskers import Items, Masker
from khot.explain.maskers.items import encoded, in_order, masked
from khot.explain.samplers import Sampler, choose_items
from khot.sampling import Relaxation
from khot.topk import successive_softmax


@dataclass(eq=False, repr=False)
class SubsetExplainer(BaseEstimator):
    """Explain any model by the k items of a row (words, columns, patches) most informative about its prediction.

    A selector scores the items of a row, k of them are drawn by relaxed subset sampling, and a predictor that sees only
    these learns to predict what the model predicts from the whole row. Both maximise E[log q(output | chosen items)],
    which is a lower bound, up to a constant, of the mutual information of the output and the chosen items. The model is
    a black box: only its outputs are used. Once fitted, an explanation is one forward pass: the k items with the
    highest scores, without noise.

    Parameters
    ----------
    k : int
        Number of items to choose. All items of a row with fewer are chosen.
    masker : {"columns", "words", "sentences", "patches", "tokens"} or Masker
        What the items are, see `khot.explain.maskers`.
    selector, predictor : nn.Module, optional
        Networks to use instead of the masker's: a selector from codes (b, ...) to logits (b, items), and a predictor
        from codes and a mask (b, items) to class logits. `fit` trains copies.
    sampler : {"subset", "l2x"} or callable
        How items are drawn in training: by relaxed subset sampling, as the k independent samples of L2X, or by a
        function ``f(logits, k, temperature, generator)``.
    relaxation : callable
        Relaxation ``f(keys, k, temperature)`` of the sampler "subset".
    for_class : bool
        Whether to choose the items that are evidence for the predicted class, as other methods do, rather than those
        that are most informative about the output. There is one selector for each class then, and the predictor learns
        from random subsets alone, so that the selectors cannot encode the class in the positions that they choose.
        `explain` needs the model.
    random_choices : int, optional
        Number of random subsets of each row that the model is queried on, in addition to the whole rows. The predictor
        learns from the answers, which improves it where rows are few. By default 3 with `for_class` (which needs at
        least 1) and for fewer than 2,000 rows, else 0.
    temperature : "search" or float
        Temperature of the relaxation. "search" takes the one of 0.1, 0.5, 1, 2 and 5 with the least loss on held-out
        rows after a short training.
    epochs, batch_size, learning_rate, optimizer, averaging, patience
        As in `khot.training.Settings`; the optimizer is RMSprop by default. Patience lasts for at least 50 steps.
    search_epochs : int
        Epochs of the short training at each temperature of the search, extended to 50 steps where rows are few. The
        final training is at least as long.
    validation_share : float
        Share of the rows that are held out. The weights of the epoch with the least loss on them are kept; this loss is
        computed with the top k items, and with the scale of the predictor's logits that fits best.
    model_batch_size : int
        Maximum number of rows in a call of the model.
    class_names : sequence of str, optional
        Names of the classes, for display.
    device : {"cpu", "cuda", "mps", "auto"}
        Device of the networks.
    random_state : int, at most 2^32 - 1
        Seed of the initial weights, the held-out rows, the batches and the noise. Results are not reproducible if
        several threads fit at once, as they share the global generator of torch.
    folder : path, optional
        Folder for the answers of the model and the trainings, so that `fit` can be resumed. By default they are not
        kept.
    resume : bool
        Whether to resume the trainings in `folder`.
    verbose : bool
        Whether to print the losses of the epochs, and of each temperature of the search.

    Attributes
    ----------
    temperature_ : float
        Temperature of the training.
    search_ : dict
        Loss on held-out rows for each temperature of the search.
    history_ : list of dict
        Losses of every epoch.
    seconds_ : float
        Duration of all trainings, including those of the search and those before a resume.
    classes_ : int
        Number of classes of the model.
    seen_ : list of int
        Classes that the model predicted for rows of `fit`.
    random_choices_ : int
        Number of random subsets of each row that the model was queried on; not set by `load`.
    masker_ : Masker
        Fitted copy of `masker`.
    module_ : nn.Module
        The trained networks, `selector` and `predictor`.

    Examples
    --------
    >>> import numpy as np
    >>> from khot.explain import SubsetExplainer
    >>> X = np.random.RandomState(0).randn(2000, 5)
    >>> def predict_proba(X):  # a model that depends on the last column only
    ...     p = 1 / (1 + np.exp(-5 * X[:, 4]))
    ...     return np.stack([1 - p, p], 1)
    >>> explainer = SubsetExplainer(k=1, temperature=0.5, epochs=5, batch_size=100, random_state=0)
    >>> explanation = explainer.fit(predict_proba, X).explain(X[:3])
    >>> explanation.chosen.nonzero()[1]
    array([4, 4, 4])

    References
    ----------
    Xie & Ermon, "Reparameterizable Subset Sampling via Continuous Relaxations", IJCAI 2019.
    Chen, Song, Wainwright & Jordan, "Learning to explain", ICML 2018.
    """

    k: int
    _: KW_ONLY
    masker: str | Masker = "columns"
    selector: nn.Module | None = None
    predictor: nn.Module | None = None
    sampler: str | Sampler = "subset"
    relaxation: Relaxation = successive_softmax
    for_class: bool = False
    random_choices: int | None = None
    temperature: str | float = "search"
    epochs: int = 20
    search_epochs: int = 2
    batch_size: int = 100
    learning_rate: Any = 1e-3
    optimizer: Any = None
    averaging: float | None = 0.999
    patience: int | None = 3
    validation_share: float = 0.1
    model_batch_size: int = 256
    class_names: Sequence[str] | None = None
    device: str = "cpu"
    random_state: int = 0
    folder: Path | str | None = None
    resume: bool = False
    verbose: bool = False

    temperature_: float = field(init=False)
    search_: dict[float, float] = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    seconds_: float = field(init=False)
    classes_: int = field(init=False)
    seen_: list[int] = field(init=False)
    random_choices_: int = field(init=False)
    masker_: Masker = field(init=False)
    module_: Explainer = field(init=False)
    limits_: dict[str, list[bool] | None] = field(init=False)
    predict_proba_: PredictProba | None = field(init=False)

    def fit(
        self,
        predict_proba: PredictProba,
        X: Any,  # noqa: N803
        *,
        eligible: Any = None,
        forced: Any = None,
    ) -> "SubsetExplainer":
        """Train selector and predictor on the outputs of the model for the rows. No labels are needed.

        Parameters
        ----------
        predict_proba : callable
            The model: a function of rows that returns class probabilities (n, classes), of scikit-learn, PyTorch or a
            remote service. It is called once for every `model_batch_size` rows, and as often for each of the
            `random_choices_`.
        X : array, data frame, tensor, or list of texts
            Rows in the form that the masker and the model take.
        eligible, forced : bool array, shape (items,) or (n, items), optional
            Which items may be chosen, and which are always chosen, eligible or not (they count among the k). Flags of
            shape (items,) are also the default of `explain`.

        Returns
        -------
        SubsetExplainer
            The fitted explainer itself.

        Raises
        ------
        BlackBoxError
            If predict_proba fails, or does not return probabilities.
        InvalidValueError, InvalidTypeError
            If the parameters or the rows cannot be used.
        DivergedError, RunFolderError
            As `khot.training.fit`.
        """
        with fitting(self) as folder:
            check_parameters(self)
            black_box = BlackBox(predict_proba, self.model_batch_size, None if self.folder is None else folder)
            self.random_choices_ = choices_per_row(self, _inputs.count_rows(X, least=2))
            _inputs.check_unused(folder, self.resume, about(self))
            items, limits = self._encode(X, eligible, forced)
            rows = ask(self, black_box, X, items, limits)
            train(self, rows, folder)
            self.classes_, self.seen_ = rows.outputs.shape[1], rows.outputs.argmax(1).unique().tolist()
            self.predict_proba_ = predict_proba
        return self

    def explain(
        self,
        X: Any,  # noqa: N803
        predict_proba: PredictProba | None = None,
        *,
        eligible: Any = None,
        forced: Any = None,
        row_names: Any = None,
    ) -> Explanation:
        """Choose the k items of each row.

        Parameters
        ----------
        X : array, data frame, tensor, or list of texts
            Rows as in `fit`.
        predict_proba : callable, optional
            The model, by default that of `fit`. It is queried on the whole rows and on the chosen items alone.
        eligible, forced : bool array, shape (items,) or (n, items), optional
            As in `fit`, whose flags of shape (items,) are the default.
        row_names : sequence of texts or numbers, optional
            Names of the rows, such as ids, for display. By default the index of a data frame or series of pandas, else
            numbers from 0.

        Returns
        -------
        Explanation
            Exactly k items for each row, or all that may be chosen if these are fewer. Without noise, so the same at
            every call.
        """
        self._check_fitted()
        rows = _inputs.count_rows(X, least=1)
        row_names = X.index if row_names is None and hasattr(X, "iloc") else row_names
        row_names, class_names = _inputs.row_names(row_names, rows), _inputs.class_names(self.class_names)
        X = in_order(self.masker_, X)  # noqa: N806
        items = encoded(self.masker_, X)
        eligible = self.limits_["eligible"] if eligible is None else eligible
        forced = self.limits_["forced"] if forced is None else forced
        limits = _inputs.find_limits(items, eligible, forced, self.k)
        model = self.predict_proba_ if predict_proba is None else predict_proba
        black_box = None if model is None else BlackBox(model, self.model_batch_size, classes=self.classes_)
        full = None if black_box is None else black_box.ask(X)
        logits = self.module_.score(items, self._predicted_classes(full))
        chosen = choose_items(logits, *limits, self.k).bool().numpy()
        scores, free = logits.masked_fill(~items.present, -torch.inf), limits.eligible & ~limits.forced
        alone = None if black_box is None else black_box.ask(masked(self.masker_, X, chosen), "masked rows")
        return Explanation(self.masker_, X, chosen, scores.numpy(), full, alone, class_names, row_names, free.numpy())

    def save(self, path: Path | str) -> None:
        """Write the fitted explainer into a folder: numbers as JSON, tensors as safetensors.

        Parameters
        ----------
        path : path
            A new or empty folder, or one with an explainer that is to be replaced.

        Raises
        ------
        ModelFileError
            If the folder holds something else.
        """
        self._check_fitted()
        _storage.write(Path(path), self)

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        masker: Masker | None = None,
        selector: nn.Module | None = None,
        predictor: nn.Module | None = None,
    ) -> "SubsetExplainer":
        """Read a saved explainer, which chooses the same items as before.

        The model is not stored: pass it to `explain` to get its outputs.

        Parameters
        ----------
        path : path
            The folder.
        masker, selector, predictor : optional
            Replacements of the same kind for a masker or networks that were not khot's, which are not stored; for the
            masker, the `masker_` of the saved explainer.

        Returns
        -------
        SubsetExplainer
            An explainer with the k, masker, class names and temperature of the saved one, and with its sampler and
            relaxation if they are khot's. The other parameters, which matter only to `fit`, have their defaults.

        Raises
        ------
        ModelFileError
            If the folder holds no explainer, or a damaged one, or a module does not fit.
        """
        for name, network in (("selector", selector), ("predictor", predictor)):
            _inputs.check_network(name, network)
        return _storage.read(Path(path), cls, masker, selector, predictor)

    def _encode(self, X: Any, eligible: Any, forced: Any) -> tuple[Items, _inputs.Limits]:  # noqa: N803
        """Items of the rows to learn from, by a copy of the masker that is fitted to them."""
        self.masker_ = copy.deepcopy(_inputs.find_masker(self.masker))
        self.masker_.fit(X)
        items = encoded(self.masker_, X)
        limits = _inputs.find_limits(items, eligible, forced, self.k, learning=True)
        _inputs.warn_of_nothing_to_choose(limits, self.k)
        self.limits_ = {"eligible": _inputs.for_all_rows(eligible), "forced": _inputs.for_all_rows(forced)}
        return items, limits

    def _predicted_classes(self, outputs: np.ndarray | None) -> Tensor | None:
        """Classes (n,) that the model predicts, for selectors by class."""
        if not self.for_class:
            return None
        if outputs is None:
            raise InvalidValueError(
                "items that are evidence for the predicted class cannot be chosen without the model: "
                "pass predict_proba to SubsetExplainer.explain"
            )
        classes = torch.from_numpy(outputs.argmax(1))
        _inputs.warn_of_new_classes(classes, self.seen_)
        return classes

    def _check_fitted(self) -> None:
        if not hasattr(self, "module_"):
            raise InvalidValueError("the explainer is not fitted: call fit(predict_proba, X) first")
