"""Items that speak for a class: the selector is told the class that the black box names.

A selector that knows the class could tell it to the predictor by *which* items it chooses, whatever they are. So the
predictor learns from random choices alone, and is left as it is where the selector learns from it.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional


class SelectorByClass(nn.Module):
    """Codes (b, ...) and classes (b,) to logits (b, items), by a selector of each class."""

    def __init__(self, selectors: Sequence[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(selectors)

    def forward(self, codes: Tensor, classes: Tensor) -> Tensor:
        labels = classes.unique().tolist()
        if len(labels) == 1:  # as of a single row
            return self._scores(labels[0], codes)
        groups = [(classes == label).nonzero().squeeze(1) for label in labels]
        logits = torch.cat([self._scores(label, codes[rows]) for label, rows in zip(labels, groups, strict=True)])
        return logits[torch.cat(groups).argsort()]

    def _scores(self, label: int, codes: Tensor) -> Tensor:
        if self.training and len(codes) == 1:  # of one row, batch normalisation has no statistics
            with evaluating(self.each[label]):
                return self.each[label](codes)
        return self.each[label](codes)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A module in evaluation mode; each of its parts is back in its own afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """A module that stays as it is: in evaluation mode, and without gradients in its parameters."""
    learning = [p for p in module.parameters() if p.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        with evaluating(module):
            yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


def for_the_class(outputs: Tensor) -> dict[str, Tensor]:
    """The class that the black box names for each row (n,), and that class as what is to be said of it (n, classes)."""
    classes = outputs.argmax(1)
    return {"classes": classes, "outputs": functional.one_hot(classes, outputs.shape[1]).to(outputs.dtype)}


def warn_of_new_classes(classes: Tensor, seen: Sequence[int]) -> None:
    """Of classes (n,) that were named for no row of the training, no selector has learnt anything."""
    new = sorted(set(classes.tolist()) - set(seen))
    if new:
        warnings.warn(
            f"the black box names class {', '.join(map(str, new))}, which it named for no row of fit, so that what is "
            "chosen for it means nothing: fit with rows of this class",
            stacklevel=3,
        )
