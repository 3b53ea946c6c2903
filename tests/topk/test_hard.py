import torch
from hypothesis import given
from hypothesis import strategies as st

from khot import hard_topk
from khot.topk import topk_indices

INF = torch.inf


@given(st.lists(st.one_of(st.integers(-3, 3), st.just(-INF)), min_size=1, max_size=12), st.data())
def test_picks_the_largest_and_of_equal_keys_the_first(keys: list[float], data: st.DataObject):
    k = data.draw(st.integers(0, len(keys)))
    expected = [i for i in sorted(range(len(keys)), key=lambda i: (-keys[i], i)) if keys[i] > -INF][:k]
    row = torch.tensor(keys, dtype=torch.float32)
    assert topk_indices(row, k).tolist() == expected + [-1] * (k - len(expected))
    assert hard_topk(row, k).nonzero().flatten().tolist() == sorted(expected)
    assert hard_topk(row, k, ordered=True).argmax(-1).tolist()[: len(expected)] == expected


def test_rows_have_k_of_their_own():
    keys, k = torch.tensor([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0], [1.0, 1.0, 1.0]]), torch.tensor([1, 0, 2])
    assert hard_topk(keys, k).tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert topk_indices(keys, k).tolist() == [[1, -1], [-1, -1], [0, 1]]


def test_keeps_the_dtype_and_has_no_gradient():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        result = hard_topk(torch.ones(4, dtype=dtype, requires_grad=True), 2)
        assert result.dtype == dtype
        assert not result.requires_grad


def test_memory_does_not_grow_with_k_times_n():
    assert hard_topk(torch.arange(100_000.0), 50_000).sum() == 50_000


def test_nothing_waits_for_a_device():
    """The device "meta" has no values: whatever reads one raises."""
    keys, k = torch.empty(2, 5, device="meta"), torch.empty(2, dtype=torch.int64, device="meta")
    assert hard_topk(keys, k).shape == (2, 5)
    assert hard_topk(keys, k, ordered=True).shape == (2, 5, 5)
    assert topk_indices(keys, k).shape == (2, 5)
