"""Learning rates against those of torch."""

import pytest
import torch
from torch.optim import lr_scheduler

from khot.errors import KhotError
from khot.schedules import Linear
from khot.training import Cosine, OneCycle, WarmUp


def of_torch(make, rate: float, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros((), requires_grad=True)], lr=rate)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize(("steps", "rise"), [(50, 0.3), (7, 0.5), (100, 0.25)])
def test_one_cycle(steps: int, rise: float):
    theirs = of_torch(lambda o: lr_scheduler.OneCycleLR(o, 0.4, steps + 1, pct_start=rise), 0.4, steps)
    ours = OneCycle(0.4, steps + 1, rise)
    assert [ours(step) for step in range(steps)] == pytest.approx(theirs, rel=1e-9)
    assert ours(10**6) == pytest.approx(0.4 / 25e4)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_short_cycles(steps: int):
    assert all(0 < OneCycle(0.4, steps)(step) <= 0.4 for step in range(5))


def test_cosine():
    theirs = of_torch(lambda o: lr_scheduler.CosineAnnealingLR(o, 20, eta_min=0.01), 0.4, 21)
    ours = Cosine(0.4, steps=20, end=0.01)
    assert [ours(step) for step in range(21)] == pytest.approx(theirs, rel=1e-9)
    assert ours(1000) == 0.01
    assert Cosine(0.4, steps=20)(20) == 0


def test_warm_up():
    decay = Linear(1.0, 0.1, steps=9)
    rate = WarmUp(decay, steps=3)
    assert rate(0) == pytest.approx(1 / 3)
    assert rate(1) == pytest.approx(2 / 3 * decay(1))
    assert [rate(step) for step in (2, 5, 9)] == [decay(step) for step in (2, 5, 9)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cosine(0.0, steps=5),
        lambda: Cosine(0.1, steps=0),
        lambda: Cosine(0.1, steps=5, end=-1),
        lambda: OneCycle(0.1, steps=5, rise=1.0),
        lambda: OneCycle(-0.1, steps=5),
        lambda: WarmUp(0.1, steps=1.5),
        lambda: WarmUp("0.1", steps=5),
    ],
)
def test_bad_rates(make):
    with pytest.raises(KhotError, match="must"):
        make()
