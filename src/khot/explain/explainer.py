"""Explain a black box: which k items of a row tell what it says about the row?"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from khot import _checks
from khot._estimators.fitting import check_resume, find_device, fitting
from khot.errors import InvalidValueError
from khot.explain import _storage, _training
from khot.explain._by_class import for_the_class, warn_of_new_classes
from khot.explain._choices import answers_to, masked, random_choices
from khot.explain._fitting import about, new_networks, settings, train
from khot.explain._inputs import (
    answers_folder,
    check_networks,
    check_unused,
    count,
    encoded,
    find_masker,
    function,
    in_order,
    named_classes,
    named_rows,
    network,
)
from khot.explain._limits import for_all_rows, limits
from khot.explain._warnings import warn_of_nothing_to_choose
from khot.explain.black_box import PredictProba, outputs
from khot.explain.explanation import Explanation
from khot.explain.maskers import Masker
from khot.explain.samplers import Sampler
from khot.explain.samplers import find as find_sampler
from khot.sampling import Relaxation
from khot.topk import hard_topk, successive_softmax
from khot.training import RMSprop

MOST_CHOICES, CHOICES = 100, 3
FEW_ROWS = 2000  # of which selector and predictor alone are learnt by heart
MOST_ITEMS = 10**6


class SubsetExplainer:
    """Explain any model by the k items of a row (words, columns, patches) that tell most about its output.

    A selector scores the items of a row; k of them are drawn by relaxed subset sampling; a predictor that sees only
    these learns to say what the black box says about the whole row, and the selector to choose those that help it:
    E[log q(output | chosen items)] is maximised, a bound of their mutual information. Once fitted, an explanation is
    one forward pass: the k items with the highest scores, without noise.

    Parameters
    ----------
    k : int
        Items to choose. A row with fewer items is chosen whole.
    masker : {"columns", "words", "sentences", "patches", "tokens"} or Masker
        What the items are, see `khot.explain.maskers`.
    selector, predictor : nn.Module, optional
        Networks of your own: codes (b, ...) to logits (b, items), and (codes, mask (b, items)) to class logits. By
        default the masker's. `fit` trains copies.
    sampler : {"subset", "l2x"} or callable
        Relaxed subset sampling, the k independent samples of L2X, or ``f(logits, k, temperature, generator)``.
    relaxation : callable
        ``f(keys, k, temperature)``, for the sampler "subset".
    for_class : bool
        By default those items are chosen that tell most about the output, and the selector has to find out itself
        what that is. Else those that speak for the class that the black box names, as other methods choose them: there
        is a selector for each class, and the predictor learns from random choices alone, so that it cannot learn the
        class from where the selector chooses. `explain` then needs the black box.
    random_choices : int, optional
        So many random choices of k items of each row the black box is asked about too, and the predictor learns its
        answers: it learns more from as many rows, and answers more as the black box does. By default 3 for fewer than
        2,000 rows, of which explanations mostly become better, and with `for_class`, which needs some; else none.
    temperature : "search" or float
        By default the one of 0.1, 0.5, 1, 2 and 5 with the least loss on held-out rows after a short training each.
    epochs, batch_size, learning_rate, optimizer, averaging, patience
        As in `khot.training.Settings`; the optimizer is RMSprop by default. Patience lasts for 50 steps at least.
    search_epochs : int
        Epochs for each temperature of the search; of few rows as many as make 50 steps. The training afterwards is at
        least as long.
    validation_share : float
        Share of the rows that are held out; the weights of the epoch with the least loss on them are kept. That is the
        loss of the top k items, with the logits of the predictor scaled as fits best.
    model_batch_size : int
        Most rows in a call of the black box.
    class_names : sequence of str, optional
        Names of the classes, for people to read.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device for the networks.
    random_state : int, at most 2^32 - 1
        Fixes the weights at the start, the held-out rows, the batches and the noise, unless `fit` runs in several
        threads at once, which share the global generator of torch.
    folder : path, optional
        Where the answers of the black box and the trainings are written to, so that they can be resumed. By default
        they leave nothing behind.
    resume : bool
        Go on with the trainings in `folder`.
    verbose : bool
        Print the losses of the epochs, and of each temperature of the search.

    Attributes
    ----------
    temperature_ : float
        The temperature of the training.
    search_ : dict
        Loss on held-out rows for each temperature that was tried.
    history_ : list of dict
        Losses of every epoch.
    seconds_ : float
        What the trainings took, those of the search and those before a resume included.
    classes_ : int
        Outputs of the black box.
    seen_ : list of int
        Classes that it named for rows of `fit`.
    random_choices_ : int
        Random choices of each row that it was asked about; not there after `load`.
    masker_ : Masker
        That of the rows of `fit`, a copy of `masker`.
    module_ : nn.Module
        The trained networks, `selector` and `predictor`.

    Examples
    --------
    >>> import numpy as np
    >>> from khot.explain import SubsetExplainer
    >>> X = np.random.RandomState(0).randn(2000, 5)
    >>> def predict_proba(X):  # a model that looks at the last column only
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

    def __init__(
        self,
        k: int,
        *,
        masker: str | Masker = "columns",
        selector: nn.Module | None = None,
        predictor: nn.Module | None = None,
        sampler: str | Sampler = "subset",
        relaxation: Relaxation = successive_softmax,
        for_class: bool = False,
        random_choices: int | None = None,
        temperature: str | float = "search",
        epochs: int = 20,
        search_epochs: int = 2,
        batch_size: int = 100,
        learning_rate: Any = 1e-3,
        optimizer: Any = None,
        averaging: float | None = 0.999,
        patience: int | None = 3,
        validation_share: float = 0.1,
        model_batch_size: int = 256,
        class_names: Sequence[str] | None = None,
        device: str = "cpu",
        random_state: int = 0,
        folder: Path | str | None = None,
        resume: bool = False,
        verbose: bool = False,
    ) -> None:
        self.k = _checks.whole_number("k", k, least=1, most=MOST_ITEMS)
        self.masker = find_masker(masker)
        self.selector, self.predictor = network("selector", selector), network("predictor", predictor)
        self.sampler, self.relaxation = sampler, _checks.relaxation(relaxation)
        find_sampler(sampler, self.relaxation)
        self.for_class = _checks.flag("for_class", for_class)
        self.random_choices = random_choices
        if random_choices is not None:
            _checks.whole_number("random_choices", random_choices, least=1 if for_class else 0, most=MOST_CHOICES)
        searched = isinstance(temperature, str) and temperature == "search"
        self.temperature = temperature if searched else _checks.positive("temperature", temperature)
        self.epochs, self.search_epochs, self.batch_size = epochs, search_epochs, batch_size
        self.learning_rate, self.averaging, self.patience = learning_rate, averaging, patience
        self.optimizer = RMSprop() if optimizer is None else optimizer
        share = _checks.positive("validation_share", validation_share)
        self.validation_share = _checks.below_one("validation_share", share, "pass the share to hold out")
        self.model_batch_size = _checks.whole_number("model_batch_size", model_batch_size, least=1)
        self.class_names = None if class_names is None else named_classes(class_names)
        self.device = device
        self.random_state = _checks.whole_number("random_state", random_state, least=0)
        if random_state >= 2**32:
            raise InvalidValueError(
                f"random_state must be at most 2^32 - 1, but got {random_state}: pass a smaller one"
            )
        self.folder, self.resume, self.verbose = folder, resume, verbose
        check_resume(self)
        find_device(device)
        for passes in (epochs, search_epochs):
            settings(self, 1.0, passes, batch_size)

    def __repr__(self) -> str:
        fitted = f", fitted at temperature {self.temperature_:g}" if hasattr(self, "module_") else ""
        return f"<SubsetExplainer: {self.k} items of {self.masker!r}, sampler {self.sampler!r}{fitted}>"

    def fit(
        self,
        predict_proba: PredictProba,
        X: Any,  # noqa: N803
        *,
        eligible: Any = None,
        forced: Any = None,
    ) -> "SubsetExplainer":
        """Train selector and predictor on what the black box says about the rows. No labels are needed.

        Parameters
        ----------
        predict_proba : callable
            Rows to class probabilities (n, classes): of scikit-learn, PyTorch, a remote service. It is called once for
            every `model_batch_size` rows, and as often for each of the `random_choices_`.
        X : array, data frame, tensor, or list of texts
            Rows, as the masker takes them.
        eligible, forced : bool array, shape (items,) or (n, items), optional
            Which items may be chosen, and which are chosen always, eligible or not (they count among the k). Those of
            shape (items,) also hold in `explain`.

        Returns
        -------
        SubsetExplainer
            Itself.

        Raises
        ------
        BlackBoxError
            If predict_proba fails, or returns something else than probabilities.
        InvalidValueError, InvalidTypeError
            For rows that cannot be used.
        """
        function(predict_proba)
        if count(X) < 2:
            raise InvalidValueError(f"X must have at least two rows, but got {len(X)}: add some")
        with fitting(self) as folder:
            few = self.for_class or count(X) < FEW_ROWS
            self.random_choices_ = (CHOICES if few else 0) if self.random_choices is None else self.random_choices
            check_networks(self.masker, {"selector": self.selector, "predictor": self.predictor})
            check_unused(folder, self.resume, about(self))
            self.masker_ = copy.deepcopy(self.masker)
            self.masker_.fit(X)
            items = encoded(self.masker_, X)
            self.limits_ = {"eligible": for_all_rows(eligible), "forced": for_all_rows(forced)}
            rows = {"codes": items.codes, **limits(items, eligible, forced, self.k, learning=True)}
            warn_of_nothing_to_choose(rows["eligible"], rows["forced"], self.k)
            _training.check_selector(new_networks(self, classes=2), items.codes, items.present, self.for_class)
            kept = None if self.folder is None else folder

            def check(classes: int) -> None:
                if self.class_names is not None and len(self.class_names) != classes:
                    raise InvalidValueError(
                        f"class_names must name the {classes} classes of the black box, but got {self.class_names}: "
                        "pass as many"
                    )
                _training.check_predictor(new_networks(self, classes), items.codes, items.present, classes)

            answers = outputs(
                predict_proba, X, self.model_batch_size, folder=answers_folder(kept, items.codes, X), check=check
            )
            rows["outputs"], self.classes_ = torch.from_numpy(answers), answers.shape[1]
            self.seen_ = sorted(set(answers.argmax(1).tolist()))
            if self.for_class:
                rows |= for_the_class(rows["outputs"])
            if self.random_choices_:
                choices = random_choices(rows, self.k, self.random_choices_, self.random_state)
                asked = predict_proba, self.masker_, X, choices, self.model_batch_size, self.classes_, kept
                rows |= {"choices": choices, "answers": answers_to(*asked)}
            trained = train(self, rows, folder)
            self.module_, self.history_, self.predict_proba_ = trained.module, trained.history, predict_proba
            self.temperature_, self.search_, self.seconds_ = trained.temperature, trained.search, trained.seconds
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
            The black box, by default that of `fit`; it is asked what it says about the rows and the chosen items.
        eligible, forced : bool array, shape (items,) or (n, items), optional
            As in `fit`, from which they are taken by default if they were of shape (items,).
        row_names : sequence of texts or numbers, optional
            Names of the rows, such as ids, for the forms of the explanation; by default the index of a data frame or
            series of pandas, and for all else numbers from 0.

        Returns
        -------
        Explanation
            Exactly k items for each row, or all that may be chosen if these are fewer. The same every time: there is no
            noise.
        """
        self._check_fitted()
        if count(X) == 0:
            raise InvalidValueError("X must have at least one row, but got none: pass the rows to explain")
        row_names = X.index if row_names is None and hasattr(X, "iloc") else row_names
        names: dict[str, Any] = {"class_names": self.class_names, "row_names": named_rows(row_names, count(X))}
        X = in_order(self.masker_, X)  # noqa: N806
        items = encoded(self.masker_, X)
        eligible = self.limits_["eligible"] if eligible is None else eligible
        forced = self.limits_["forced"] if forced is None else forced
        flags = limits(items, eligible, forced, self.k)
        free = (flags["eligible"] & ~flags["forced"]).numpy()
        black_box = self.predict_proba_ if predict_proba is None else function(predict_proba)
        whole = None if black_box is None else outputs(black_box, X, self.model_batch_size, self.classes_)
        logits = _training.scores(self.module_, items, self._classes(whole))
        chosen = _training.chosen(logits, **flags, k=self.k, choose=hard_topk).bool().numpy()
        scores = logits.masked_fill(~items.present, -torch.inf).numpy()
        if black_box is None:
            return Explanation(self.masker_, X, chosen, scores, **names, eligible=free)
        alone = masked(self.masker_, X, chosen)
        part = outputs(black_box, alone, self.model_batch_size, self.classes_, what="masked rows")
        return Explanation(self.masker_, X, chosen, scores, whole, part, **names, eligible=free)

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
        """Read an explainer that was saved. It chooses as that one did.

        The black box is not stored: pass it to `explain` to see its outputs.

        Parameters
        ----------
        path : path
            The folder.
        masker, selector, predictor : optional
            Those of your own, of the same make, if there were any; as masker the `masker_` that it had.

        Returns
        -------
        SubsetExplainer
            With k and masker of the other, and with its sampler unless that was your own; the rest of the parameters,
            which only matter to `fit`, is default.

        Raises
        ------
        ModelFileError
            If the folder holds no explainer, or a damaged one, or a module does not fit.
        """
        given = {"selector": network("selector", selector), "predictor": network("predictor", predictor)}
        return _storage.read(Path(path), cls, masker, **given)

    def _classes(self, outputs: np.ndarray | None) -> Tensor | None:
        """The classes that the black box names (n,), if the selector is told them."""
        if not self.for_class:
            return None
        if outputs is None:
            raise InvalidValueError(
                "items that speak for the class that the black box names cannot be chosen without it: "
                "pass predict_proba to SubsetExplainer.explain"
            )
        classes = torch.from_numpy(outputs.argmax(1))
        warn_of_new_classes(classes, self.seen_)
        return classes

    def _check_fitted(self) -> None:
        if not hasattr(self, "module_"):
            raise InvalidValueError("the explainer is not fitted: call fit(predict_proba, X) first")
