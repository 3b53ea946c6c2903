"""Explain a black box: which k items of a row tell what it says about the row?"""

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain import _storage, _training
from khot.explain.black_box import PredictProba, outputs
from khot.explain.explanation import Explanation
from khot.explain.maskers import Columns, Items, Masker, Patches, Sentences, Tokens, Words
from khot.explain.samplers import Sampler
from khot.explain.samplers import find as find_sampler
from khot.sampling import Relaxation
from khot.topk import hard_topk, successive_softmax
from khot.training import RMSprop, Run, Settings, fit

MASKERS = {"columns": Columns, "words": Words, "sentences": Sentences, "patches": Patches, "tokens": Tokens}
TEMPERATURES = (0.1, 0.5, 1.0, 2.0, 5.0)


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
        default the masker's. They are trained in place.
    sampler : {"subset", "l2x"} or callable
        Relaxed subset sampling, the k independent samples of L2X, or ``f(logits, k, temperature, generator)``.
    relaxation : callable
        ``f(keys, k, temperature)``, for the sampler "subset".
    temperature : "search" or float
        By default the one of 0.1, 0.5, 1, 2 and 5 with the least loss on held-out rows after a short training each.
    epochs, batch_size, learning_rate, optimizer, patience
        As in `khot.training.Settings`; the optimizer is RMSprop by default.
    search_epochs : int
        Epochs for each temperature of the search.
    validation_share : float
        Share of the rows that are held out; the weights of the epoch with the least loss on them are kept.
    model_batch_size : int
        Most rows in a call of the black box.
    device : {"cpu", "cuda", "mps", "auto"}
        Kind of device for the networks.
    random_state : int
        Fixes the weights at the start, the held-out rows, the batches and the noise.
    folder : path, optional
        Where the trainings are written to, so that they can be resumed. By default they leave nothing behind.
    resume : bool
        Go on with the trainings in `folder`.

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
        temperature: str | float = "search",
        epochs: int = 20,
        search_epochs: int = 2,
        batch_size: int = 100,
        learning_rate: Any = 1e-3,
        optimizer: Any = None,
        patience: int | None = 3,
        validation_share: float = 0.1,
        model_batch_size: int = 256,
        device: str = "cpu",
        random_state: int = 0,
        folder: Path | str | None = None,
        resume: bool = False,
    ) -> None:
        self.k = _checks.whole_number("k", k, least=1)
        self.masker = _find_masker(masker)
        self.selector, self.predictor = selector, predictor
        self.sampler, self.relaxation = sampler, _checks.relaxation(relaxation)
        self._draw = find_sampler(sampler, self.relaxation)
        self.temperature = temperature if temperature == "search" else _checks.positive("temperature", temperature)
        self.epochs, self.search_epochs, self.batch_size = epochs, search_epochs, batch_size
        self.learning_rate, self.patience = learning_rate, patience
        self.optimizer = RMSprop() if optimizer is None else optimizer
        if not 0 < _checks.positive("validation_share", validation_share) < 1:
            raise InvalidValueError(
                f"validation_share must lie below 1, but got {validation_share}: pass the share to hold out"
            )
        self.validation_share = validation_share
        self.model_batch_size = _checks.whole_number("model_batch_size", model_batch_size, least=1)
        self.device = device
        self.random_state = _checks.whole_number("random_state", random_state, least=0)
        if resume and folder is None:
            raise InvalidValueError("resume goes on with the trainings in folder, but folder is None: pass its folder")
        self.folder, self.resume = folder, resume

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
            every `model_batch_size` rows.
        X : array, data frame, tensor, or list of texts
            Rows, as the masker takes them.
        eligible, forced : bool array, shape (items,) or (n, items), optional
            Which items may be chosen, and which are chosen always (they count among the k).

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
        if not callable(predict_proba):
            raise InvalidTypeError(
                f"predict_proba must be a function of rows, but got {predict_proba!r}: pass model.predict_proba"
            )
        if len(X) < 2:
            raise InvalidValueError(f"X must have at least two rows, but got {len(X)}: add some")
        items = self.masker.fit(X).encode(X)
        rows = {"codes": items.codes, **_restrictions(items, eligible, forced)}
        rows["outputs"] = torch.from_numpy(outputs(predict_proba, X, self.model_batch_size))
        self.classes_ = rows["outputs"].shape[1]
        place = tempfile.TemporaryDirectory() if self.folder is None else nullcontext(self.folder)
        with place as folder:
            module, run = self._train(rows, Path(folder))
        self.history_, self.module_, self.predict_proba_ = run.history, module, predict_proba
        self.seconds_ += sum(record["seconds"] for record in run.history)
        return self

    def explain(
        self,
        X: Any,  # noqa: N803
        predict_proba: PredictProba | None = None,
        *,
        eligible: Any = None,
        forced: Any = None,
    ) -> Explanation:
        """Choose the k items of each row.

        Parameters
        ----------
        X : array, data frame, tensor, or list of texts
            Rows as in `fit`.
        predict_proba : callable, optional
            The black box, by default that of `fit`; it is asked what it says about the rows and the chosen items.
        eligible, forced : bool array, shape (items,) or (n, items), optional
            As in `fit`.

        Returns
        -------
        Explanation
            Exactly k items for each row, or all that it has. The same every time: there is no noise.
        """
        self._check_fitted()
        if len(X) == 0:
            raise InvalidValueError("X must have at least one row, but got none: pass the rows to explain")
        items = self.masker.encode(X)
        limits = _restrictions(items, eligible, forced)
        logits = _training.scores(self.module_.selector, items.codes)
        chosen = _training.chosen(logits, **limits, k=self.k, choose=hard_topk).bool().numpy()
        scores = logits.masked_fill(~items.present, -torch.inf).numpy()
        black_box = predict_proba or self.predict_proba_
        if black_box is None:
            return Explanation(self.masker, X, chosen, scores)
        full = outputs(black_box, X, self.model_batch_size)
        masked = outputs(black_box, self.masker.mask(X, chosen), self.model_batch_size)
        return Explanation(self.masker, X, chosen, scores, full, masked)

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
            Those of your own, of the same make, if there were any; the masker as it was after `fit`.

        Returns
        -------
        SubsetExplainer
            With k, masker and sampler of the other; the rest of the parameters, which only matter to `fit`, is default.

        Raises
        ------
        ModelFileError
            If the folder holds no explainer, or a damaged one, or a module does not fit.
        """
        return _storage.read(Path(path), cls, masker, selector, predictor)

    def _check_fitted(self) -> None:
        if not hasattr(self, "module_"):
            raise InvalidValueError("the explainer is not fitted: call fit(predict_proba, X) first")

    def _train(self, rows: dict[str, Tensor], folder: Path) -> tuple[_training.Explainer, Run]:
        order = np.random.RandomState(self.random_state).permutation(len(rows["codes"]))
        count = max(1, int(self.validation_share * len(order)))
        held_out, kept = (
            {name: value[part] for name, value in rows.items()} for part in (order[:count], order[count:])
        )
        self.search_, self.seconds_ = {}, 0.0
        if self.temperature == "search":
            for value in TEMPERATURES:
                module = self._module(trial=True)
                run = self._fit(module, kept, held_out, value, self.search_epochs, folder / f"search-{value:g}")
                self.search_[value] = run.best["validation"]["loss"]
                self.seconds_ += sum(record["seconds"] for record in run.history)
            self.temperature_ = min(self.search_, key=lambda value: self.search_[value])
        else:
            self.temperature_ = float(self.temperature)
        module = self._module()
        return module, self._fit(module, kept, held_out, self.temperature_, self.epochs, folder / "training")

    def _fit(self, module: nn.Module, kept: dict, held_out: dict, temperature: float, epochs: int, folder: Path) -> Run:
        settings = Settings(
            epochs=epochs,
            batch_size=min(self.batch_size, len(kept["codes"])),
            learning_rate=self.learning_rate,
            optimizer=self.optimizer,
            temperature=temperature,
            monitor="loss",
            patience=self.patience,
            seed=self.random_state,
        )
        loss = _training.ExplainLoss(self.k, self._draw)
        validate = _training.Validation(held_out, self.k)
        options = {"folder": folder, "resume": self.resume, "accelerator": self.device}
        return fit(module, loss, kept, settings, validate=validate, **options)

    def _module(self, trial: bool = False) -> _training.Explainer:
        """New networks, or yours; in a trial copies of yours."""
        import copy

        with torch.random.fork_rng([]):
            torch.manual_seed(self.random_state)
            selector = self.masker.selector() if self.selector is None else self.selector
            predictor = self.masker.predictor(self.classes_) if self.predictor is None else self.predictor
            return _training.Explainer(*(copy.deepcopy(part) if trial else part for part in (selector, predictor)))


def _find_masker(masker: str | Masker) -> Masker:
    if isinstance(masker, str):
        return MASKERS[_checks.choice("masker", masker, tuple(MASKERS))]()
    missing = [name for name in ("fit", "encode", "mask", "pieces") if not callable(getattr(masker, name, None))]
    if missing:
        raise InvalidTypeError(
            f"masker must be one of {', '.join(MASKERS)} or have the methods of khot.explain.maskers.Masker, "
            f"but {masker!r} has no {missing[0]}: add it"
        )
    return masker


def _restrictions(items: Items, eligible: Any, forced: Any) -> dict[str, Tensor]:
    """What may and what must be chosen, of the items that are present."""
    may = items.present if eligible is None else items.present & _flags("eligible", eligible, items.present)
    must = torch.zeros_like(may) if forced is None else items.present & _flags("forced", forced, items.present)
    return {"eligible": may, "forced": must}


def _flags(name: str, value: Any, present: Tensor) -> Tensor:
    flags = torch.as_tensor(np.asarray(value))
    if flags.dtype != torch.bool or tuple(flags.shape) not in (tuple(present.shape), (present.shape[1],)):
        raise InvalidValueError(
            f"{name} must be a bool array of shape ({present.shape[1]},) or {tuple(present.shape)}, "
            f"but got {flags.dtype} of shape {tuple(flags.shape)}: pass one flag for each item"
        )
    return flags.expand(present.shape)
