import pytest
import torch

import khot
from khot.explain.samplers import SubsetSample, concrete_maximum

LOGITS = torch.tensor([[1.0, 0.0, -1.0, -torch.inf], [0.5, 0.5, 2.0, 0.0]])


def test_l2x_is_the_maximum_of_independent_softmaxes():
    generator = torch.Generator().manual_seed(0)
    keys = khot.gumbel_keys(LOGITS[:, None].expand(2, 3, 4), generator)
    wanted = torch.stack([torch.softmax(keys[:, j] / 0.7, -1) for j in range(3)]).max(0).values
    torch.testing.assert_close(concrete_maximum(LOGITS, 3, 0.7, torch.Generator().manual_seed(0)), wanted)


def test_of_one_item_both_are_the_same():
    ours, theirs = (s(LOGITS, 1, 0.3, torch.Generator().manual_seed(0)) for s in (SubsetSample(), concrete_maximum))
    assert torch.equal(ours, theirs)


def test_l2x_may_choose_an_item_twice_and_ours_does_not():
    logits = torch.tensor([4.0, 0.0, 0.0, 0.0]).expand(2000, 4)
    generator = torch.Generator().manual_seed(1)
    theirs = concrete_maximum(logits, 2, 0.01, generator).round().sum(-1)
    ours = SubsetSample()(logits, 2, 0.01, generator).sum(-1)
    p = torch.softmax(logits[0], -1)
    assert (theirs == 1).float().mean().item() == pytest.approx(p.square().sum().item(), abs=0.03)
    torch.testing.assert_close(ours, torch.full((2000,), 2.0))


def test_rows_may_have_a_k_of_their_own():
    k = torch.tensor([0, 2])
    for sampler in (concrete_maximum, SubsetSample()):
        mask = sampler(LOGITS, k, 0.05, torch.Generator().manual_seed(2))
        assert mask[0].sum() == 0
        assert 1 <= mask[1].sum() <= 2.001


def test_a_row_without_items_has_no_choice():
    mask = concrete_maximum(torch.full((1, 3), -torch.inf), 2, 1.0)
    assert (mask == 0).all()
    assert (concrete_maximum(LOGITS, 0, 1.0) == 0).all()


def test_gradients_flow_through_both():
    for sampler in (concrete_maximum, SubsetSample()):
        logits = LOGITS.clone().requires_grad_()
        (sampler(logits, 2, 0.5, None) * torch.arange(4.0)).sum().backward()
        assert logits.grad is not None
        assert logits.grad.isfinite().all()
        assert logits.grad.norm() > 0


def test_rows_without_items_have_no_gradient():
    logits = torch.tensor([[0.0, 1.0], [-torch.inf, -torch.inf]], requires_grad=True)
    sample = concrete_maximum(logits, 2, 0.5)
    sample.sum().backward()
    assert sample[1].tolist() == [0, 0]
    assert logits.grad.isfinite().all()
