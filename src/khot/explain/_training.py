"""What the training of an explainer computes in a step, and at the end of an epoch."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from khot.explain.samplers import Sampler
from khot.topk import hard_topk
from khot.training import Step

_ROWS = 512  # looked at together when there is no gradient

Rows = dict[str, Tensor]
"""codes (n, ...), eligible and forced (n, items), outputs (n, classes)."""


class Explainer(nn.Module):
    """The selector, which scores the items, and the predictor, which sees the chosen ones only."""

    def __init__(self, selector: nn.Module, predictor: nn.Module) -> None:
        super().__init__()
        self.selector, self.predictor = selector, predictor

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
    """The cross-entropy of the black box's outputs and the predictor's, with relaxed samples of the items."""

    k: int
    sampler: Sampler

    def __call__(self, module: nn.Module, batch: Rows, step: Step) -> Tensor:
        def choose(logits: Tensor, k: int | Tensor) -> Tensor:
            return self.sampler(logits, k, step.temperature, step.generator)

        predicted = module(batch["codes"], batch["eligible"], batch["forced"], self.k, choose)
        return cross_entropy(batch["outputs"], predicted)


@dataclass(frozen=True)
class Validation:
    """The same with the top k of the logits, without noise, on held-out rows."""

    rows: Rows = field(repr=False)
    k: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        device = next(module.parameters()).device
        total = 0.0
        for start in range(0, len(self.rows["codes"]), _ROWS):
            part = {name: value[start : start + _ROWS].to(device) for name, value in self.rows.items()}
            predicted = module(part["codes"], part["eligible"], part["forced"], self.k, hard_topk)
            total += cross_entropy(part["outputs"], predicted).item() * len(predicted)
        return {"loss": total / len(self.rows["codes"])}


def cross_entropy(outputs: Tensor, logits: Tensor) -> Tensor:
    """The mean over rows of -sum_c outputs_c log softmax(logits)_c."""
    return -(outputs * logits.log_softmax(-1)).sum(-1).mean()


def scores(selector: nn.Module, codes: Tensor) -> Tensor:
    """The logits (n, items) of all rows, on the CPU."""
    device = next(selector.parameters()).device
    selector.eval()
    with torch.no_grad():
        return torch.cat([selector(part.to(device)).float().cpu() for part in codes.split(_ROWS)])
