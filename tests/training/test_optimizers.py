"""Optimizers make the steps of torch's own, in one pass over the parameters where that is quicker."""

import pytest
import torch
from torch import nn

from khot.training import SGD, Adam, AdamW, RMSprop

PAIRS = {
    "SGD": (SGD(0.9, True, 0.1), lambda p: torch.optim.SGD(p, 0.0, 0.9, weight_decay=0.1, nesterov=True)),
    "Adam": (Adam((0.8, 0.9), 1e-6, 0.1), lambda p: torch.optim.Adam(p, 0.0, (0.8, 0.9), 1e-6, 0.1, fused=False)),
    "AdamW": (AdamW((0.8, 0.9), 1e-6, 0.1), lambda p: torch.optim.AdamW(p, 0.0, (0.8, 0.9), 1e-6, 0.1, fused=False)),
    "RMSprop": (RMSprop(0.8, 1e-6, 0.1), lambda p: torch.optim.RMSprop(p, 0.0, 0.8, 1e-6, 0.1)),
}


def trained(make, dtype):
    """The weights after some steps on a fixed problem."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(dtype)
    optimizer, rows = make(module.parameters()), torch.randn(20, 3, dtype=dtype)
    for _ in range(10):
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        optimizer.zero_grad()
        (module(rows).squeeze(1) - rows.sum(1)).square().mean().backward()
        optimizer.step()
    return nn.utils.parameters_to_vector(module.parameters()).detach()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_steps_are_those_of_torch(name, dtype):
    ours, theirs = (trained(make, dtype) for make in PAIRS[name])
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [Adam(), AdamW()])
def test_one_pass_on_the_cpu_alone(make):
    assert make([nn.Parameter(torch.zeros(2))]).defaults["fused"] is True
    assert make([nn.Parameter(torch.zeros(2, device="meta"))]).defaults["fused"] is None
