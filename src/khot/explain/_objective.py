"""What is optimised: the loss of a training step, and the loss on held-out rows."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from khot.errors import InvalidValueError
from khot.explain._module import check_shape, rows_at_once
from khot.explain.samplers import Sampler
from khot.topk import hard_topk
from khot.training import Step

_LOG2_SCALES = -20.0, 20.0  # bounds for the scale of logits
_HALVINGS = 40


@dataclass(frozen=True)
class Rows:
    """Rows to learn from, and what is to be predicted from the chosen items."""

    codes: Tensor  # (n, ...)
    eligible: Tensor  # bool, (n, items)
    forced: Tensor  # bool, (n, items)
    outputs: Tensor  # (n, classes)
    classes: Tensor | None = None  # (n,), for a selector by class
    choices: Tensor | None = None  # bool, (n, draws, items): random subsets of the items
    answers: Tensor | None = None  # (n, draws, classes): the model's outputs for these subsets

    def __len__(self) -> int:
        return len(self.codes)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are present, in the form that `khot.training.fit` takes."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def take(self, rows: Any, device: torch.device | str = "cpu") -> "Rows":
        """Some of the rows, on a device."""
        return Rows(**{name: value[rows].to(device) for name, value in self.tensors().items()})


@dataclass(frozen=True)
class ExplainLoss:
    """Cross-entropy of the model's outputs and those of the predictor, which sees a relaxed sample of the items.

    If there are answers to random subsets, their cross-entropy is added; it has a gradient in the predictor only.
    """

    k: int
    sampler: Sampler

    def __call__(self, module: nn.Module, batch: dict[str, Tensor], step: Step) -> Tensor:
        def choose(logits: Tensor, k: int | Tensor) -> Tensor:
            mask = self.sampler(logits, k, step.temperature, step.generator)
            check_shape("sampler", mask, logits.shape, "a number for each item")
            if logits.requires_grad and not mask.requires_grad:
                raise InvalidValueError(
                    "sampler and relaxation must have a gradient in the logits, from which the selector learns, "
                    "but got a result without: pass a relaxed one"
                )
            return mask.to(logits.dtype)

        rows = Rows(**batch)
        logits = module(rows.codes, rows.eligible, rows.forced, self.k, choose, rows.classes)
        return cross_entropy(rows.outputs, logits) + _loss_of_answers(module, rows)


@dataclass(frozen=True)
class Validation:
    """Cross-entropy on held-out rows, with the items of the top k logits and without noise.

    A predictor that was trained on relaxed samples is overconfident on k-hot ones, the more so the higher the
    temperature was. As this does not concern the choice of items, its logits are scaled to fit best. A predictor that
    learns from random subsets alone is not scaled, and its loss on these is added.
    """

    rows: Rows = field(repr=False)
    k: int

    def __call__(self, module: nn.Module) -> dict[str, float]:
        logits, of_answers = [], 0.0
        step, device = rows_at_once(self.rows.codes), next(module.parameters()).device
        for start in range(0, len(self.rows), step):
            part = self.rows.take(slice(start, start + step), device)
            found = module(part.codes, part.eligible, part.forced, self.k, hard_topk, part.classes)
            logits.append(found.cpu().double())
            if part.classes is not None:
                of_answers += len(part) * _loss_of_answers(module, part).item()
        outputs = self.rows.outputs.double()
        if self.rows.classes is None:
            return {"loss": calibrated_loss(outputs, torch.cat(logits))}
        of_answers /= len(outputs)
        return {"loss": cross_entropy(outputs, torch.cat(logits)).item() + of_answers, "answers": of_answers}


def _loss_of_answers(module: Any, rows: Rows) -> Tensor:
    """Mean cross-entropy of the model's answers to random subsets and the predictor's, or 0 without random subsets."""
    if rows.choices is None or rows.answers is None:
        return torch.zeros(())
    pairs = zip(rows.choices.unbind(1), rows.answers.unbind(1), strict=True)
    losses = [cross_entropy(answers, module.predictor(rows.codes, mask.float())) for mask, answers in pairs]
    return torch.stack(losses).mean()


def cross_entropy(outputs: Tensor, logits: Tensor) -> Tensor:
    """Mean over the rows of -sum_c outputs_c log softmax(logits)_c."""
    return -(outputs * logits.log_softmax(-1)).sum(-1).mean()


def calibrated_loss(outputs: Tensor, logits: Tensor) -> float:
    """Smallest cross-entropy of outputs and logits (n, classes) times a scale, in which it is convex.

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> outputs = (logits / 8).softmax(-1)
    >>> abs(calibrated_loss(outputs, logits) - cross_entropy(outputs, logits / 8).item()) < 1e-6
    True
    """
    low, high = _LOG2_SCALES
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rises = (((logits * 2**middle).softmax(-1) - outputs) * logits).sum() > 0
        low, high = (low, middle) if rises else (middle, high)
    return cross_entropy(outputs, logits * 2**low).item()
