"""Measures of how far explanations can be trusted: is the prediction the same from the chosen items alone?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from khot import _checks
from khot._renamed import renamed
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain.black_box import BlackBox, PredictProba
from khot.explain.explanation import Explanation
from khot.explain.maskers import Masker
from khot.explain.maskers.items import encoded, in_order, masked

_NORMAL = 1.96  # of a 95% interval


@dataclass(frozen=True)
class Share:
    """A share of rows with its 95% confidence interval.

    >>> Share.of(np.array([True, True, True, False]))
    Share(value=0.75, low=0.30..., high=0.95...)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, flags: NDArray[np.bool_]) -> "Share":
        """Share of true flags with Wilson's interval, which holds for few rows and for shares near 0 and 1, too."""
        if len(flags) == 0:
            raise InvalidValueError("there must be at least one row, but got none: explain some")
        n, p, z = len(flags), float(np.mean(flags)), _NORMAL
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return cls(p, min(p, max(0.0, float(middle - half))), max(p, min(1.0, float(middle + half))))


def post_hoc_accuracy(explanation: Explanation) -> Share:
    """Share of rows for which the model predicts the same class from the chosen items alone as from the whole row.

    Parameters
    ----------
    explanation : Explanation
        An explanation with the outputs of the model.

    Returns
    -------
    Share
        Share of the rows with its 95% confidence interval.
    """
    return Share.of(explanation.agrees)


def post_hoc_accuracy_of(
    predict_proba: PredictProba,
    masker: Masker,
    X: Any,  # noqa: N803
    chosen: NDArray[np.bool_],
    batch_size: int = 256,
    full: NDArray[np.float32] | None = None,
) -> Share:
    """Post-hoc accuracy of items that were chosen in any other way, for comparison.

    `random_items` chooses at random, and `largest_items` by scores such as `gradient_norms`.

    Parameters
    ----------
    predict_proba : callable
        The model, from rows to class probabilities (n, classes).
    masker : Masker
        A fitted masker, such as `explainer.masker_`.
    X : array, data frame, tensor, or list of texts
        Rows.
    chosen : ndarray of bool, shape (n, items)
        Which items are chosen.
    batch_size : int
        Maximum number of rows in a call of the model.
    full : ndarray, shape (n, classes), optional
        Class probabilities for the whole rows, if they are known.

    Returns
    -------
    Share
        Share of the rows with its 95% confidence interval.
    """
    chosen, batch_size = np.asarray(chosen), _checks.whole_number("batch_size", batch_size, least=1)
    if chosen.ndim != 2 or len(chosen) != len(X) or chosen.dtype != bool:
        raise InvalidValueError(
            f"chosen must be bool of shape ({len(X)}, items), but got {chosen.dtype} of shape {chosen.shape}: "
            "pass a flag for each item of each row"
        )
    if isinstance(masker, type) or not callable(getattr(masker, "mask", None)):
        raise InvalidTypeError(f"masker must be a fitted masker, but got {masker!r}: pass explainer.masker_")
    X = in_order(masker, X)  # noqa: N806
    items = encoded(masker, X).present.shape[1]
    if chosen.shape[1] != items:
        raise InvalidValueError(
            f"chosen must have a flag for each of the {items} items, but got {chosen.shape[1]}: pass one for each"
        )
    black_box = BlackBox(predict_proba, batch_size)
    full = black_box.ask(X) if full is None else np.asarray(full)
    alone = black_box.ask(masked(masker, X, chosen), "masked rows")
    if full.shape != alone.shape:
        raise InvalidValueError(
            f"full must be the outputs of the same model for the rows, {alone.shape}, but got shape {full.shape}: "
            "pass its outputs, or None to query it"
        )
    return Share.of(full.argmax(1) == alone.argmax(1))


@renamed(seed="random_state")
def random_accuracy(explanation: Explanation, predict_proba: PredictProba, random_state: int = 0) -> Share:
    """Post-hoc accuracy of random items, as many for each row as were chosen, for comparison.

    Parameters
    ----------
    explanation : Explanation
        The explanation to compare with. Its forced items are kept, and random ones are drawn from those that the
        explainer was free to choose.
    predict_proba : callable
        The model, from rows to class probabilities (n, classes).
    random_state : int
        Seed of the random items.

    Returns
    -------
    Share
        Share of the rows with its 95% confidence interval.
    """
    forced = explanation.chosen & ~explanation.free
    wanted = explanation.chosen.sum(1) - forced.sum(1)
    chosen = forced | random_items(explanation.free, wanted, random_state)
    return post_hoc_accuracy_of(predict_proba, explanation.masker, explanation.rows, chosen, full=explanation.full)


@renamed(seed="random_state")
def random_items(present: NDArray[np.bool_], k: int | NDArray[np.integer], random_state: int = 0) -> NDArray[np.bool_]:
    """Flags (n, items) of k random items among those present in each row, or of all if a row has fewer.

    k may be an array (n,) with a number for each row.

    >>> random_items(np.array([[True, True, False], [True, True, True]]), k=2).sum(1)
    array([2, 2])
    """
    noise = np.random.RandomState(_checks.whole_number("random_state", random_state, least=0) % 2**32)
    return largest_items(noise.rand(*np.shape(present)), present, k)


def largest_items(scores: NDArray[Any], present: NDArray[np.bool_], k: int | NDArray[np.integer]) -> NDArray[np.bool_]:
    """Flags (n, items) of the k present items of each row with the largest scores; ties go to the first.

    k may be an array (n,) with a number for each row.

    >>> largest_items(np.array([[0.1, 0.9, 0.5]]), np.array([[True, False, True]]), k=1)
    array([[False, False,  True]])
    """
    if not isinstance(k, np.ndarray):
        wanted = _checks.whole_number("k", k, least=1)
    elif k.shape == (len(present),) and k.dtype.kind in "iu" and (k >= 0).all():
        wanted = k[:, None]
    else:
        raise InvalidValueError(
            f"k must be a whole number, or {len(present)} of them, one for each row, but got {k!r}: "
            "pass 0 or more for each"
        )
    scores, present = np.asarray(scores), np.asarray(present, dtype=bool)
    if scores.shape != present.shape or scores.ndim != 2:
        raise InvalidValueError(
            f"scores and present must have the same shape (rows, items), but got {scores.shape} and {present.shape}: "
            "pass a score for each item"
        )
    order = np.lexsort((-np.nan_to_num(scores.astype(float), nan=-np.inf), ~present), axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    return (ranks < wanted) & present


def gradient_norms(model: nn.Module, X: Tensor, layer: nn.Module | None = None) -> NDArray[np.float32]:  # noqa: N803
    """Absolute gradients of a PyTorch model's most probable class in each number of a row, or norms for each token.

    Parameters
    ----------
    model : nn.Module
        Rows to class logits (n, classes). It is put into evaluation mode.
    X : Tensor
        Rows: numbers, or tokens if there is an embedding layer.
    layer : nn.Module, optional
        The model's embedding. The gradient is taken with respect to its output instead of X.

    Returns
    -------
    array
        Absolute values of the gradient of log p(class), in the shape of X. With a layer, norms of the gradient over the
        last axis of the layer's output, in the shape of the other axes.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> _ = torch.nn.init.zeros_(model.weight), torch.nn.init.zeros_(model.bias)
    >>> with torch.no_grad():
    ...     model.weight[1, 2] = 4.0
    >>> gradient_norms(model, torch.zeros(1, 3))
    array([[0., 0., 2.]], dtype=float32)
    """
    if layer is None and isinstance(X, Tensor) and not X.is_floating_point():
        raise InvalidTypeError(f"layer must be the model's embedding for tokens of {X.dtype}, but got None: pass it")
    if layer is None:
        rows = _checks.float_tensor("X", X).detach().requires_grad_()
        return _gradient(model, rows, [rows]).abs().cpu().numpy()
    inside: list[Tensor] = []

    def keep(module: nn.Module, given: Any, output: Tensor) -> Tensor:
        inside.append(output.detach().requires_grad_())
        return inside[-1]

    handle = layer.register_forward_hook(keep)
    try:
        return _gradient(model, X, inside).norm(dim=-1).cpu().numpy()
    finally:
        handle.remove()


def _gradient(model: nn.Module, rows: Tensor, inside: list[Tensor]) -> Tensor:
    """Gradient of the largest log-probability in the one tensor that is in `inside` after the model was called."""
    with torch.enable_grad():
        logits = model.eval()(rows)
    if len(inside) != 1:
        raise InvalidValueError(f"layer must be used once by model, but was {len(inside)} times: pass its embedding")
    likely = logits.log_softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
    return torch.autograd.grad(likely.sum(), inside[0])[0]


def stability(explanations: Sequence[Explanation]) -> float:
    """Mean share of items that two explanations of the same rows have in common, such as those of different seeds.

    Parameters
    ----------
    explanations : sequence of Explanation
        At least two explanations of the same rows.

    Returns
    -------
    float
        Mean over rows and pairs of |A and B| / max(|A|, |B|); 1 if all chose the same items.
    """
    if not isinstance(explanations, Sequence) or not all(isinstance(one, Explanation) for one in explanations):
        raise InvalidTypeError(
            f"stability compares several Explanations, but got {explanations!r}: pass a list of them"
        )
    if len(explanations) < 2 or len({e.chosen.shape for e in explanations}) != 1:
        raise InvalidValueError(
            f"stability compares at least two explanations of the same rows, but got {len(explanations)} of shapes "
            f"{sorted({e.chosen.shape for e in explanations})}: explain the same rows with each"
        )
    overlaps = []
    for a, b in combinations([explanation.chosen for explanation in explanations], 2):
        most = np.maximum(a.sum(1), b.sum(1))
        overlaps.append(np.where(most > 0, (a & b).sum(1) / np.maximum(most, 1), 1.0).mean())
    return float(np.mean(overlaps))


@dataclass(frozen=True)
class Leakage:
    """How well the class can be predicted from the positions of the chosen items alone, without their content.

    Attributes
    ----------
    accuracy : float
        Cross-validated accuracy of a logistic regression from the mask to the class that the model predicts.
    majority : float
        Share of the most frequent class, for comparison.
    """

    accuracy: float
    majority: float


def leakage(explanation: Explanation, folds: int = 5) -> Leakage:
    """Measure whether the selector encodes the class in *which* items it chooses, whatever their content.

    A selector is trained together with a predictor, so the two can agree on a code, such as items at the front for one
    class and items at the back for the other. If the accuracy is far above the majority's, the content of the chosen
    items may not be the reason for the prediction. In a table, different classes may also depend on different columns,
    as in a decision tree; and with `for_class` the selector knows the class, so that its choice may depend on it.

    Parameters
    ----------
    explanation : Explanation
        An explanation with the outputs of the model. Rows of classes with fewer rows than folds are left out.
    folds : int
        Number of folds of the cross-validation, at least 2.

    Returns
    -------
    Leakage
        Accuracy from the mask alone, and of the most frequent class.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    classes = explanation.outputs[0].argmax(1)
    counts = np.bincount(classes)
    enough = counts[classes] >= _checks.whole_number("folds", folds, least=2)
    if not enough.any():
        raise InvalidValueError(
            f"leakage needs a class with at least {folds} rows, but the largest has {counts.max()}: explain more rows"
        )
    masks, classes = explanation.chosen[enough].astype(float), classes[enough]
    majority = float(np.bincount(classes).max() / len(classes))
    if majority == 1:
        return Leakage(accuracy=1.0, majority=1.0)
    guesses = cross_val_predict(LogisticRegression(max_iter=1000), masks, classes, cv=folds)
    return Leakage(float((guesses == classes).mean()), majority)
