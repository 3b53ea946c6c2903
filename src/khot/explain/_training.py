"""What the training of an explainer computes in a step, and at the end of an epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from khot.errors import InvalidValueError
from khot.explain.samplers import Sampler
from khot.topk import hard_topk
from khot.training import Step

_ROWS, _NUMBERS = 512, 2**20  # at most so many rows and codes are looked at together when there is no gradient
_SCALES = -20.0, 20.0  # of logits, as powers of two
_HALVINGS = 40

Rows = dict[str, Tensor]
"""codes (n, ...), eligible and forced (n, items), outputs (n, classes); random choices of items (n, r, items) and the
answers (n, r, classes) of the black box to them, if it was asked."""


class Explainer(nn.Module):
    """The selector, which scores the items, and the predictor, which sees the chosen ones only."""

    def __init__(self, selector: nn.Module, predictor: nn.Module) -> None:
        super().__init__()
        self.selector, self.predictor = selector, predictor

    @property
    def device(self) -> torch.device:
        """That of its parameters."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))

    def forward(self, codes: Tensor, eligible: Tensor, forced: Tensor, k: int, choose: Callable) -> Tensor:
        """Class logits (b, classes) from k items, chosen by ``choose(logits, k)``."""
        return self.predictor(codes, chosen(self.selector(codes), eligible, forced, k, choose))


def chosen(logits: Tensor, eligible: Tensor, forced: Tensor, k: int, choose: Callable) -> Tensor:
    """A mask (b, items) of the forced items, and of as many of the eligible as are then still wanted."""
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
            if bool(logits.isnan().any()):
                return logits * torch.nan  # for the training to say that it diverged
            mask = self.sampler(logits, k, step.temperature, step.generator)
            _must_have_shape("sampler", mask, logits.shape, "a number for each item")
            return mask

        codes = batch["codes"]
        loss = cross_entropy(batch["outputs"], module(codes, batch["eligible"], batch["forced"], self.k, choose))
        if "choices" not in batch:
            return loss
        pairs = zip(batch["choices"].unbind(1), batch["answers"].unbind(1), strict=True)
        learned = [cross_entropy(answers, module.predictor(codes, mask.float())) for mask, answers in pairs]  # pyright: ignore[reportCallIssue]
        return loss + torch.stack(learned).mean()


@dataclass(frozen=True)
class Validation:
    """The same with the top k of the logits, without noise, on held-out rows.

    A predictor that has seen relaxed samples only is too sure of hard ones, the more so the warmer they were, and that
    says nothing about the choice: its logits are scaled to fit.
    """

    rows: Rows = field(repr=False)
    k: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        device = next(module.parameters()).device
        logits: list[Tensor] = []
        step = rows_at_once(self.rows["codes"])
        for start in range(0, len(self.rows["codes"]), step):
            part = (self.rows[name][start : start + step].to(device) for name in ("codes", "eligible", "forced"))
            logits.append(module(*part, self.k, hard_topk).cpu().double())
        return {"loss": calibrated_loss(self.rows["outputs"].double(), torch.cat(logits))}


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


def scores(module: Explainer, codes: Tensor) -> Tensor:
    """The logits (n, items) of all rows, on the CPU."""
    module.eval()
    with torch.no_grad():
        parts = codes.split(rows_at_once(codes))
        return torch.cat([module.selector(part.to(module.device)).float().cpu() for part in parts])


def check_selector(module: Explainer, codes: Tensor, present: Tensor) -> None:
    """Refuse a selector whose outputs do not fit the items."""
    module.eval()
    with torch.no_grad():
        logits = _called("selector", lambda: module.selector(codes[:2]), codes)
        _must_have_shape("selector", logits, present[:2].shape, "a logit for each item")


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
