"""How far an explanation can be trusted: does the black box say the same about the chosen items alone?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from khot import _checks
from khot.errors import InvalidTypeError, InvalidValueError
from khot.explain._choices import masked
from khot.explain._inputs import encoded, function, in_order
from khot.explain.black_box import PredictProba, outputs
from khot.explain.explanation import Explanation
from khot.explain.maskers import Masker

_NORMAL = 1.96  # of a 95% interval


@dataclass(frozen=True)
class Share:
    """A share of rows with its 95% interval.

    >>> Share.of(np.array([True, True, True, False]))
    Share(value=0.75, low=0.30..., high=0.95...)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, flags: NDArray[np.bool_]) -> "Share":
        """The share of true flags, with Wilson's interval, which is right for few rows and for shares near 0 and 1."""
        if len(flags) == 0:
            raise InvalidValueError("there must be at least one row, but got none: explain some")
        n, p, z = len(flags), float(np.mean(flags)), _NORMAL
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return cls(p, min(p, max(0.0, float(middle - half))), max(p, min(1.0, float(middle + half))))


def post_hoc_accuracy(explanation: Explanation) -> Share:
    """How often the black box names the same class for the chosen items alone as for the whole row.

    Parameters
    ----------
    explanation : Explanation
        With the outputs of the black box.

    Returns
    -------
    Share
        Of the rows, with a 95% interval.
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
    """The same of items (n, items) that were chosen in any other way, for comparison.

    `random_items` chooses at random, `largest_items` by scores such as those of `gradient_norms`. `full` is what the
    black box said about the whole rows, if it was asked before.
    """
    chosen, batch_size = np.asarray(chosen), _checks.whole_number("batch_size", batch_size, least=1)
    if chosen.ndim != 2 or len(chosen) != len(X) or chosen.dtype != bool:
        raise InvalidValueError(
            f"chosen must be bool of shape ({len(X)}, items), but got {chosen.dtype} of shape {chosen.shape}: "
            "pass a flag for each item of each row"
        )
    if isinstance(masker, type) or not callable(getattr(masker, "mask", None)):
        raise InvalidTypeError(f"masker must be a fitted one, but got {masker!r}: pass explainer.masker_")
    X = in_order(masker, X)  # noqa: N806
    items = encoded(masker, X).present.shape[1]
    if chosen.shape[1] != items:
        raise InvalidValueError(
            f"chosen must have a flag for each of the {items} items, but got {chosen.shape[1]}: pass one for each"
        )
    full = outputs(function(predict_proba), X, batch_size) if full is None else np.asarray(full)
    alone = outputs(function(predict_proba), masked(masker, X, chosen), batch_size)
    if full.shape != alone.shape:
        raise InvalidValueError(
            f"full must be what the same black box says about the rows, {alone.shape}, but got shape {full.shape}: "
            "pass its outputs, or None to ask it"
        )
    return Share.of(full.argmax(1) == alone.argmax(1))


def random_accuracy(explanation: Explanation, predict_proba: PredictProba, seed: int = 0) -> Share:
    """The post-hoc accuracy of as many random items of each row, of those that may be chosen, for comparison.

    Parameters
    ----------
    explanation : Explanation
        Of some rows.
    predict_proba : callable
        The black box.
    seed : int
        Fixes the items.

    Returns
    -------
    Share
        Of the rows, with a 95% interval.
    """
    forced = explanation.chosen & ~explanation.free
    wanted = explanation.chosen.sum(1) - forced.sum(1)
    chosen = forced | random_items(explanation.free, wanted, seed)
    return post_hoc_accuracy_of(predict_proba, explanation.masker, explanation.rows, chosen, full=explanation.full)


def random_items(present: NDArray[np.bool_], k: int | NDArray[np.integer], seed: int = 0) -> NDArray[np.bool_]:
    """k random items (n, items) of those present in each row, or all of a row that has fewer; or k (n,) of each row.

    >>> random_items(np.array([[True, True, False], [True, True, True]]), k=2).sum(1)
    array([2, 2])
    """
    noise = np.random.RandomState(_checks.whole_number("seed", seed, least=0) % 2**32)
    return largest_items(noise.rand(*np.shape(present)), present, k)


def largest_items(scores: NDArray[Any], present: NDArray[np.bool_], k: int | NDArray[np.integer]) -> NDArray[np.bool_]:
    """The k items (n, items) with the largest scores of those present in each row; of equal ones the first.

    k may be an array (n,), with a number for each row.

    >>> largest_items(np.array([[0.1, 0.9, 0.5]]), np.array([[True, False, True]]), k=1)
    array([[False, False,  True]])
    """
    wanted = _of_each_row(k, len(present)) if isinstance(k, np.ndarray) else _checks.whole_number("k", k, least=1)
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


def _of_each_row(k: NDArray[np.integer], rows: int) -> NDArray[np.integer]:
    if k.shape != (rows,) or k.dtype.kind not in "iu" or (k < 0).any():
        raise InvalidValueError(
            f"k must be a whole number, or {rows} of them, one for each row, but got {k!r}: pass 0 or more for each"
        )
    return k[:, None]


def gradient_norms(model: nn.Module, X: Tensor, layer: nn.Module | None = None) -> NDArray[np.float32]:  # noqa: N803
    """How strongly a PyTorch model's most probable class depends on each number of a row, or on each token.

    Parameters
    ----------
    model : nn.Module
        Rows to class logits (n, classes). It is put into evaluation mode.
    X : Tensor
        Rows: numbers, or tokens if there is an embedding layer.
    layer : nn.Module, optional
        The model's embedding: the gradient with respect to its output is taken instead of that with respect to X.

    Returns
    -------
    array
        Gradients of log p(class) without their sign, in the shape of X; norms over the last dimension of the layer's
        output, in the shape of its others.

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
    """That of the largest log-probability, in the one tensor that is `inside` after the model was called."""
    with torch.enable_grad():
        logits = model.eval()(rows)
    if len(inside) != 1:
        raise InvalidValueError(f"layer must be used once by model, but was {len(inside)} times: pass its embedding")
    likely = logits.log_softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
    return torch.autograd.grad(likely.sum(), inside[0])[0]


def stability(explanations: Sequence[Explanation]) -> float:
    """How much explainers agree that were fitted with different seeds: the mean share of items that two have in common.

    Parameters
    ----------
    explanations : sequence of Explanation
        Of the same rows, at least two.

    Returns
    -------
    float
        1 if all chose the same. The share is |A and B| / max(|A|, |B|), averaged over rows and pairs.
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
    """How well the choice alone, without what was chosen, tells the class.

    Attributes
    ----------
    accuracy : float
        Of a logistic regression from the mask to the class of the black box, on rows that it was not fitted on.
    majority : float
        The share of the most frequent class, which is reached without looking.
    """

    accuracy: float
    majority: float


def leakage(explanation: Explanation, folds: int = 5) -> Leakage:
    """Whether the selector tells the class by *which* items it chooses, whatever they are.

    A selector is trained together with a predictor, so the two can agree on a code: items at the front for one class,
    at the back for the other. If the accuracy is far above the majority's, the chosen items may not be the reason.
    (For a table it may also be that different classes rest on different columns, as they do for a tree; and with
    `for_class` the selector is told the class, and its choice may tell it.)

    Parameters
    ----------
    explanation : Explanation
        With the outputs of the black box. Rows of classes with fewer rows than folds are left out.
    folds : int
        Of the cross-validation, at least 2.

    Returns
    -------
    Leakage
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
