"""What the training of an explainer computes in a step, and at the end of an epoch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from khot.errors import InvalidValueError
from khot.explain._by_class import frozen
from khot.explain.maskers import Items
from khot.explain.samplers import Sampler
from khot.topk import hard_topk
from khot.training import Step

_ROWS, _NUMBERS = 512, 2**20  # at most so many rows and codes are looked at together when there is no gradient
_SCALES = -20.0, 20.0  # of logits, as powers of two
_HALVINGS = 40

Rows = dict[str, Tensor]
"""codes (n, ...), eligible and forced (n, items), outputs (n, classes); random choices of items (n, r, items) and the
answers (n, r, classes) of the black box to them, if it was asked; classes (n,), if the selector is told them."""


class Explainer(nn.Module):
    """The selector, which scores the items, and the predictor, which sees the chosen ones only."""

    def __init__(self, selector: nn.Module, predictor: nn.Module) -> None:
        super().__init__()
        self.selector, self.predictor = selector, predictor

    @property
    def device(self) -> torch.device:
        """That of its parameters."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    def scores(self, codes: Tensor, classes: Tensor | None) -> Tensor:
        """Logits (b, items) of the items, for classes (b,) if the selector is told them."""
        logits = self.selector(codes) if classes is None else self.selector(codes, classes)
        return logits.float() if isinstance(logits, Tensor) and logits.dtype == torch.float64 else logits

    def forward(
        self,
        codes: Tensor,
        eligible: Tensor,
        forced: Tensor,
        k: int,
        choose: Callable,
        classes: Tensor | None = None,
    ) -> Tensor:
        """Class logits (b, classes) from k items, chosen by ``choose(logits, k)``."""
        mask = chosen(self.scores(codes, classes), eligible, forced, k, choose)
        if classes is None:
            return self.predictor(codes, mask)
        with frozen(self.predictor):
            return self.predictor(codes, mask)


def chosen(logits: Tensor, eligible: Tensor, forced: Tensor, k: int, choose: Callable) -> Tensor:
    """A mask (b, items) of the forced items, and of as many of the eligible as are then still wanted.

    It is NaN where the logits are, for a training to say that it diverged.
    """
    if bool(logits.isnan().any()):
        return logits * torch.nan
    free = logits.masked_fill(~eligible | forced, -torch.inf)
    wanted = min(k, logits.shape[-1])
    if not forced.any():
        return choose(free, wanted)
    return forced + choose(free, (wanted - forced.sum(-1)).clamp(min=0))


@dataclass(frozen=True)
class ExplainLoss:
    """The cross-entropy of the black box's outputs and the predictor's, with relaxed samples of the items.

    And with random choices of items, if the black box was asked about them; these teach the predictor alone.
    """

    k: int
    sampler: Sampler

    def __call__(self, module: nn.Module, batch: Rows, step: Step) -> Tensor:
        def choose(logits: Tensor, k: int | Tensor) -> Tensor:
            mask = self.sampler(logits, k, step.temperature, step.generator)
            _must_have_shape("sampler", mask, logits.shape, "a number for each item")
            if logits.requires_grad and not mask.requires_grad:
                raise InvalidValueError(
                    "sampler and relaxation must have a gradient in the logits, from which the selector learns, "
                    "but got a result without: pass a relaxed one"
                )
            return mask.to(logits.dtype)

        given = (batch[name] for name in ("codes", "eligible", "forced"))
        loss = cross_entropy(batch["outputs"], module(*given, self.k, choose, batch.get("classes")))
        return loss + _loss_of_answers(module, batch) if "choices" in batch else loss


@dataclass(frozen=True)
class Validation:
    """The same with the top k of the logits, without noise, on held-out rows.

    A predictor that has seen relaxed samples only is too sure of hard ones, the more so the warmer they were, and that
    says nothing about the choice: its logits are scaled to fit. One that learns from random choices alone is taken as
    it is, and how well it does on these counts too.
    """

    rows: Rows = field(repr=False)
    k: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        logits, of_answers = [], []
        for part in self._parts(next(module.parameters()).device):
            given = (part[name] for name in ("codes", "eligible", "forced"))
            logits.append(module(*given, self.k, hard_topk, part.get("classes")).cpu().double())
            if "classes" in part:
                of_answers.append(len(part["codes"]) * _loss_of_answers(module, part).item())
        outputs = self.rows["outputs"].double()
        if not of_answers:
            return {"loss": calibrated_loss(outputs, torch.cat(logits))}
        answers = sum(of_answers) / len(outputs)
        return {"loss": cross_entropy(outputs, torch.cat(logits)).item() + answers, "answers": answers}

    def _parts(self, device: torch.device) -> Iterator[Rows]:
        step = rows_at_once(self.rows["codes"])
        for start in range(0, len(self.rows["codes"]), step):
            yield {name: value[start : start + step].to(device) for name, value in self.rows.items()}


def _loss_of_answers(module: Any, rows: Rows) -> Tensor:
    """The cross-entropy of what the black box says about random choices, and the predictor."""
    pairs = zip(rows["choices"].unbind(1), rows["answers"].unbind(1), strict=True)
    losses = [cross_entropy(answers, module.predictor(rows["codes"], mask.float())) for mask, answers in pairs]
    return torch.stack(losses).mean()


def cross_entropy(outputs: Tensor, logits: Tensor) -> Tensor:
    """The mean over rows of -sum_c outputs_c log softmax(logits)_c."""
    return -(outputs * logits.log_softmax(-1)).sum(-1).mean()


def calibrated_loss(outputs: Tensor, logits: Tensor) -> float:
    """The least cross-entropy of outputs and scaled logits (n, classes), which is convex in the scale.

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> outputs = (logits / 8).softmax(-1)
    >>> abs(calibrated_loss(outputs, logits) - cross_entropy(outputs, logits / 8).item()) < 1e-6
    True
    """
    low, high = _SCALES
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rises = (((logits * 2**middle).softmax(-1) - outputs) * logits).sum() > 0
        low, high = (low, middle) if rises else (middle, high)
    return cross_entropy(outputs, logits * 2**low).item()


def rows_at_once(codes: Tensor) -> int:
    """How many rows to look at together, such that large images do not fill the memory."""
    return max(1, min(_ROWS, _NUMBERS // max(1, codes[0].numel())))


def scores(module: Explainer, items: Items, classes: Tensor | None) -> Tensor:
    """The logits (n, items) of all rows, on the CPU."""
    if module.training:
        module.eval()
    codes, found = items.codes, []
    step = rows_at_once(codes)
    with torch.no_grad():
        for start in range(0, len(codes), step):
            told = None if classes is None else classes[start : start + step].to(module.device)
            logits = module.scores(codes[start : start + step].to(module.device), told)
            _must_have_shape("selector", logits, items.present[start : start + step].shape, "a logit for each item")
            found.append(logits.float().cpu())
    result = torch.cat(found)
    _check_scores(result, items.present)
    return result


def check_selector(module: Explainer, codes: Tensor, present: Tensor, by_class: bool) -> None:
    """Refuse a selector whose outputs do not fit the items."""
    module.eval()
    classes = torch.zeros(len(codes[:2]), dtype=torch.int64) if by_class else None
    with torch.no_grad():
        logits = _called("selector", lambda: module.scores(codes[:2], classes), codes)
        _must_have_shape("selector", logits, present[:2].shape, "a logit for each item")


def _check_scores(logits: Tensor, present: Tensor) -> None:
    """Refuse logits (n, items) of a selector that are no numbers, or leave out items that are present."""
    if bool(logits.isnan().any()):
        raise InvalidValueError("selector must return numbers, but got NaN: look at its weights, or train it anew")
    if bool((present & (logits == -torch.inf)).any()):
        raise InvalidValueError(
            "selector must return finite logits, but got -inf for an item that is present: "
            "pass eligible to SubsetExplainer.explain for items that must not be chosen"
        )


def check_predictor(module: Explainer, codes: Tensor, present: Tensor, classes: int) -> None:
    """Refuse a predictor whose outputs do not fit the classes."""
    module.eval()
    with torch.no_grad():
        logits = _called("predictor", lambda: module.predictor(codes[:2], present[:2].float()), codes)
        _must_have_shape("predictor", logits, (2, classes), "a logit for each class of the black box")


def _called(name: str, call: Callable[[], Any], codes: Tensor) -> Any:
    try:
        return call()
    except Exception as error:
        raise InvalidValueError(
            f"{name} must take items of shape (rows, {', '.join(map(str, codes.shape[1:]))}), "
            f"but failed with ({type(error).__name__}: {error}): change its first layer"
        ) from error


def _must_have_shape(name: str, got: Any, shape: Sequence[int], what: str) -> None:
    if not isinstance(got, Tensor) or got.shape != torch.Size(shape) or not got.is_floating_point():
        found = f"{got.dtype} of shape {tuple(got.shape)}" if isinstance(got, Tensor) else type(got).__name__
        raise InvalidValueError(
            f"{name} must return a floating-point tensor of shape {tuple(shape)}, but got {found}: return {what}"
        )
