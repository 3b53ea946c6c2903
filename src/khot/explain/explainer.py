"""Explain a black box: which k items of a row tell what it says about the row?"""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from khot import _checks
from khot.errors import DivergedError, InvalidValueError
from khot.estimators import check_resume, find_device, fitting
from khot.explain import _storage, _training
from khot.explain._choices import answers_to, masked, random_choices
from khot.explain._inputs import (
    answers_folder,
    check_networks,
    check_unused,
    count,
    encoded,
    find_masker,
    function,
    named_classes,
    named_rows,
    network,
)
from khot.explain._limits import for_all_rows, limits
from khot.explain._warnings import warn_of_nothing_learnt, warn_of_nothing_to_choose
from khot.explain.black_box import PredictProba, outputs
from khot.explain.explanation import Explanation
from khot.explain.maskers import Masker
from khot.explain.samplers import Sampler
from khot.explain.samplers import find as find_sampler
from khot.sampling import Relaxation
from khot.topk import hard_topk, successive_softmax
from khot.training import RMSprop, Run, Settings, fit

MOST_CHOICES = 100
TEMPERATURES = (0.1, 0.5, 1.0, 2.0, 5.0)
_LEAST_STEPS = 50  # of a training, before its loss is looked at


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
    random_choices : int
        So many random choices of k items of each row the black box is asked about too, and the predictor learns its
        answers: it learns more from as many rows, and answers more as the black box does.
    temperature : "search" or float
        By default the one of 0.1, 0.5, 1, 2 and 5 with the least loss on held-out rows after a short training each.
    epochs, batch_size, learning_rate, optimizer, averaging, patience
        As in `khot.training.Settings`; the optimizer is RMSprop by default. Patience lasts for 50 steps at least.
    search_epochs : int
        Epochs for each temperature of the search; of few rows as many as make 50 steps.
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
        Print the losses of every epoch.

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
        random_choices: int = 0,
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
        self.k = _checks.whole_number("k", k, least=1)
        self.masker = find_masker(masker)
        self.selector, self.predictor = network("selector", selector), network("predictor", predictor)
        self.sampler, self.relaxation = sampler, _checks.relaxation(relaxation)
        find_sampler(sampler, self.relaxation)
        self.random_choices = _checks.whole_number("random_choices", random_choices, least=0, most=MOST_CHOICES)
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
            self._settings(1.0, passes, batch_size)

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
            every `model_batch_size` rows, and as often for each of the `random_choices`.
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
            check_networks(self.masker, {"selector": self.selector, "predictor": self.predictor})
            check_unused(folder, self.resume, self._about)
            self.masker_ = copy.deepcopy(self.masker)
            self.masker_.fit(X)
            items = encoded(self.masker_, X)
            self.limits_ = {"eligible": for_all_rows(eligible), "forced": for_all_rows(forced)}
            rows = {"codes": items.codes, **limits(items, eligible, forced, self.k)}
            warn_of_nothing_to_choose(rows["eligible"], rows["forced"], self.k)
            _training.check_selector(self._module(classes=2), items.codes, items.present)
            kept = None if self.folder is None else folder

            def check(classes: int) -> None:
                if self.class_names is not None and len(self.class_names) != classes:
                    raise InvalidValueError(
                        f"class_names must name the {classes} classes of the black box, but got {self.class_names}: "
                        "pass as many"
                    )
                _training.check_predictor(self._module(classes), items.codes, items.present, classes)

            answers = outputs(
                predict_proba, X, self.model_batch_size, folder=answers_folder(kept, items.codes, X), check=check
            )
            rows["outputs"], self.classes_ = torch.from_numpy(answers), answers.shape[1]
            if self.random_choices:
                choices = random_choices(rows, self.k, self.random_choices, self.random_state)
                asked = predict_proba, self.masker_, X, choices, self.model_batch_size, self.classes_, kept
                rows |= {"choices": choices, "answers": answers_to(*asked)}
            self.module_, run = self._train(rows, folder)
            self.history_, self.predict_proba_ = run.history, predict_proba
            self.seconds_ += sum(record["seconds"] for record in run.history)
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
            Names of the rows, such as ids, for the forms of the explanation; by default they are numbered from 0.

        Returns
        -------
        Explanation
            Exactly k items for each row, or all that may be chosen if these are fewer. The same every time: there is no
            noise.
        """
        self._check_fitted()
        if count(X) == 0:
            raise InvalidValueError("X must have at least one row, but got none: pass the rows to explain")
        about: dict[str, Any] = {"class_names": self.class_names, "row_names": named_rows(row_names, count(X))}
        items = encoded(self.masker_, X)
        eligible = self.limits_["eligible"] if eligible is None else eligible
        forced = self.limits_["forced"] if forced is None else forced
        logits = _training.scores(self.module_, items.codes)
        flags = limits(items, eligible, forced, self.k)
        about["eligible"] = (flags["eligible"] & ~flags["forced"]).numpy()
        chosen = _training.chosen(logits, **flags, k=self.k, choose=hard_topk).bool().numpy()
        scores = logits.masked_fill(~items.present, -torch.inf).numpy()
        black_box = self.predict_proba_ if predict_proba is None else function(predict_proba)
        if black_box is None:
            return Explanation(self.masker_, X, chosen, scores, **about)
        whole, part = (
            outputs(black_box, rows, self.model_batch_size, self.classes_, what=what)
            for what, rows in (("rows", X), ("masked rows", masked(self.masker_, X, chosen)))
        )
        return Explanation(self.masker_, X, chosen, scores, whole, part, **about)

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

    def _check_fitted(self) -> None:
        if not hasattr(self, "module_"):
            raise InvalidValueError("the explainer is not fitted: call fit(predict_proba, X) first")

    def _train(self, rows: dict[str, Tensor], folder: Path) -> tuple[_training.Explainer, Run]:
        order = np.random.RandomState(self.random_state).permutation(len(rows["codes"]))
        first = max(1, int(self.validation_share * len(order)))
        held_out, kept = (
            {name: value[part] for name, value in rows.items()} for part in (order[:first], order[first:])
        )
        self.search_, self.seconds_ = {}, 0.0
        if self.temperature == "search":
            for value in TEMPERATURES:
                self.search_[value] = self._try(kept, held_out, value, folder / f"search-{value:g}")
            self.temperature_ = min(self.search_, key=lambda value: self.search_[value])
        else:
            self.temperature_ = float(self.temperature)
        module = self._module(self.classes_)
        run = self._fit(module, kept, held_out, self.temperature_, self.epochs, folder / "training")
        warn_of_nothing_learnt(kept["outputs"], held_out["outputs"], run.best["validation"]["loss"])
        return module, run

    def _try(self, kept: dict, held_out: dict, temperature: float, folder: Path) -> float:
        """The loss on held-out rows after a short training, infinity if it diverges."""
        epochs = max(self.search_epochs, self._least_epochs(kept))
        try:
            run = self._fit(self._module(self.classes_), kept, held_out, temperature, epochs, folder)
        except DivergedError:
            return math.inf
        self.seconds_ += sum(record["seconds"] for record in run.history)
        loss = run.best["validation"]["loss"]
        return math.inf if loss is None else loss

    def _fit(self, module: nn.Module, kept: dict, held_out: dict, temperature: float, epochs: int, folder: Path) -> Run:
        settings = self._settings(temperature, epochs, min(self.batch_size, len(kept["codes"])))
        if settings.patience is not None:
            settings = replace(settings, patience=max(settings.patience, self._least_epochs(kept)))
        loss = _training.ExplainLoss(self.k, find_sampler(self.sampler, self.relaxation))
        validate = _training.Validation(held_out, self.k)
        options: dict[str, Any] = {
            "folder": folder,
            "resume": self.resume,
            "about": self._about,
            "accelerator": self.device,
        }
        if self.verbose:
            print(f"temperature {temperature:g}:")
        return fit(module, loss, kept, settings, validate=validate, verbose=bool(self.verbose), **options)

    def _least_epochs(self, kept: dict) -> int:
        """How many it takes for a loss to tell something: of few rows, an epoch has few steps."""
        rows = len(kept["codes"])
        return math.ceil(_LEAST_STEPS / (rows // min(self.batch_size, rows)))

    @property
    def _about(self) -> dict[str, Any]:
        """What tells trainings apart, beside the networks and the data."""
        names = ("masker", "k", "random_choices", "random_state")
        return {name: getattr(self, name) for name in names}

    def _settings(self, temperature: float, epochs: int, batch_size: int) -> Settings:
        return Settings(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=self.learning_rate,
            optimizer=self.optimizer,
            temperature=temperature,
            averaging=self.averaging,
            monitor="loss",
            patience=self.patience,
            seed=self.random_state,
        )

    def _module(self, classes: int) -> _training.Explainer:
        """New networks, or copies of yours."""
        with torch.random.fork_rng([]):
            torch.manual_seed(self.random_state)
            selector = self.masker_.selector() if self.selector is None else copy.deepcopy(self.selector)
            predictor = self.masker_.predictor(classes) if self.predictor is None else copy.deepcopy(self.predictor)
            return _training.Explainer(selector, predictor)
