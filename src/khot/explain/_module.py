"""The module that is trained, a selector and a predictor: how it is made, tried on rows, and applied to them."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn

from khot._estimators.fitting import new_network
from khot.errors import InvalidValueError
from khot.explain.maskers import Items
from khot.explain.samplers import choose_items

_ROWS, _NUMBERS = 512, 2**20  # maximum number of rows, and of their codes, in a forward pass without gradients


class Explainer(nn.Module):
    """A selector, which scores the items, and a predictor, which sees only the chosen ones."""

    def __init__(self, selector: nn.Module, predictor: nn.Module) -> None:
        super().__init__()
        self.selector: nn.Module = selector
        self.predictor: nn.Module = predictor

    def forward(
        self, codes: Tensor, eligible: Tensor, forced: Tensor, k: int, choose: Callable, classes: Tensor | None = None
    ) -> Tensor:
        """Class logits (b, classes) from k items, chosen by ``choose(logits, k)``."""
        mask = choose_items(self.scores(codes, classes), eligible, forced, k, choose)
        if classes is None:
            return self.predictor(codes, mask)
        with frozen(self.predictor):
            return self.predictor(codes, mask)

    def scores(self, codes: Tensor, classes: Tensor | None) -> Tensor:
        """Logits (b, items) of the items; `classes` (b,) are given to a selector by class."""
        logits = self.selector(codes) if classes is None else self.selector(codes, classes)
        return logits.float() if isinstance(logits, Tensor) and logits.dtype == torch.float64 else logits

    def score(self, items: Items, classes: Tensor | None) -> Tensor:
        """Logits (n, items) of any number of rows, on the CPU and without gradients."""
        self.eval()
        device, step = next(self.parameters()).device, rows_at_once(items.codes)
        found = []
        with torch.no_grad():
            for start in range(0, len(items.codes), step):
                part = slice(start, start + step)
                known = None if classes is None else classes[part].to(device)
                logits = self.scores(items.codes[part].to(device), known)
                check_shape("selector", logits, items.present[part].shape, "a logit for each item")
                found.append(logits.float().cpu())
        result = torch.cat(found)
        if bool(result.isnan().any()):
            raise InvalidValueError("selector must return numbers, but got NaN: look at its weights, or train it again")
        if bool((items.present & (result == -torch.inf)).any()):
            raise InvalidValueError(
                "selector must return finite logits, but got -inf for an item that is present: "
                "pass eligible to SubsetExplainer.explain for items that must not be chosen"
            )
        return result


class SelectorByClass(nn.Module):
    """Codes (b, ...) and classes (b,) to logits (b, items), with one selector per class.

    A selector that knows the class could pass it on to the predictor by *which* items it chooses, whatever their
    content. So the predictor learns from random subsets alone, and is frozen where the selector learns from it.
    """

    def __init__(self, selectors: Sequence[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(selectors)

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        places, logits = [], []
        for label in classes.unique().tolist():
            places.append((classes == label).nonzero().squeeze(1))
            alone = self.training and len(places[-1]) == 1  # batch normalisation has no statistics of one row
            with evaluating(self.each[label]) if alone else nullcontext():
                logits.append(self.each[label](codes[places[-1]]))
        return torch.cat(logits)[torch.cat(places).argsort()]


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode; each of its parts returns to its own mode afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Keep a module as it is: in evaluation mode, and without gradients of its parameters."""
    learning = [p for p in module.parameters() if p.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        with evaluating(module):
            yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


def new_module(explainer: Any, classes: int) -> Explainer:
    """Untrained networks of the masker, or copies of the user's own, for the parameters of a SubsetExplainer."""

    def selector() -> nn.Module:
        return explainer.masker_.selector() if explainer.selector is None else copy.deepcopy(explainer.selector)

    def build() -> Explainer:
        scores = SelectorByClass([selector() for _ in range(classes)]) if explainer.for_class else selector()
        own = explainer.predictor
        return Explainer(scores, explainer.masker_.predictor(classes) if own is None else own)

    with ExitStack() as stack:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)  # that of the codes
        return cast("Explainer", new_network(int(explainer.random_state), build))


def try_selector(module: Explainer, items: Items, by_class: bool) -> None:
    """Refuse a selector whose outputs do not fit the items."""
    first = items.codes[:2]
    classes = torch.zeros(len(first), dtype=torch.int64) if by_class else None
    logits = _tried("selector", module, lambda: module.scores(first, classes), first)
    check_shape("selector", logits, items.present[:2].shape, "a logit for each item")


def try_predictor(module: Explainer, items: Items, classes: int) -> None:
    """Refuse a predictor whose outputs do not fit the classes."""
    first, mask = items.codes[:2], items.present[:2].float()
    logits = _tried("predictor", module, lambda: module.predictor(first, mask), first)
    check_shape("predictor", logits, (2, classes), "a logit for each class of the model")


def _tried(name: str, module: nn.Module, call: Callable[[], Any], codes: Tensor) -> Any:
    module.eval()
    try:
        with torch.no_grad():
            return call()
    except Exception as error:
        raise InvalidValueError(
            f"{name} must take items of shape (rows, {', '.join(map(str, codes.shape[1:]))}), "
            f"but failed with ({type(error).__name__}: {error}): change its first layer"
        ) from error


def check_shape(name: str, got: Any, shape: Sequence[int], what: str) -> None:
    """Refuse the output of a network or sampler unless it is a floating-point tensor of the shape."""
    if not isinstance(got, Tensor) or got.shape != torch.Size(shape) or not got.is_floating_point():
        found = f"{got.dtype} of shape {tuple(got.shape)}" if isinstance(got, Tensor) else type(got).__name__
        raise InvalidValueError(
            f"{name} must return a floating-point tensor of shape {tuple(shape)}, but got {found}: return {what}"
        )


def rows_at_once(codes: Tensor) -> int:
    """Number of rows in a forward pass without gradients, so that large images do not fill the memory."""
    return max(1, min(_ROWS, _NUMBERS // max(1, codes[0].numel())))
