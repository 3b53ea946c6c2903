"""The loss on held-out rows, by which temperature and epoch are chosen."""

import math

import pytest
import torch

from khot.explain._module import Explainer
from khot.explain._objective import Rows, Validation, calibrated_loss, cross_entropy
from khot.explain.networks import ColumnPredictor, ColumnSelector


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_least_loss_over_all_scales(logits: torch.Tensor):
    outputs = (0.3 * logits + torch.randn(200, 3, generator=torch.Generator().manual_seed(1))).softmax(-1)
    tried = min(cross_entropy(outputs, logits * scale).item() for scale in torch.logspace(-2, 2, 2001))
    assert calibrated_loss(outputs, logits) == pytest.approx(tried, abs=1e-6)
    assert calibrated_loss(outputs, logits) <= tried


def test_outputs_that_the_logits_contradict_are_best_predicted_as_constant(logits: torch.Tensor):
    assert calibrated_loss((-logits).softmax(-1), logits) == pytest.approx(math.log(3), abs=1e-5)


def test_certain_and_constant_outputs(logits: torch.Tensor):
    certain = torch.nn.functional.one_hot(logits.argmax(-1), 3).double()
    assert calibrated_loss(certain, logits) == pytest.approx(0.0, abs=1e-6)
    assert calibrated_loss(certain, torch.zeros_like(logits)) == pytest.approx(math.log(3))
    assert math.isnan(calibrated_loss(certain, logits * torch.nan))


def test_a_predictor_that_is_too_sure_is_as_good():
    torch.manual_seed(0)
    module, codes = Explainer(ColumnSelector(4, 4), ColumnPredictor(range(4), 2)).eval(), torch.randn(50, 4)
    every, none = torch.ones(50, 4, dtype=torch.bool), torch.zeros(50, 4, dtype=torch.bool)
    validate = Validation(Rows(codes, every, none, torch.randn(50, 2).softmax(-1)), k=2)
    before = validate(module)["loss"]
    with torch.no_grad():
        for parameter in module.predictor.head[-1].parameters():
            parameter *= 7
    assert validate(module)["loss"] == pytest.approx(before, rel=1e-5)
