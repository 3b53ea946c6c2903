"""Bad input gets an error that names the argument, what it got and what to do; nothing returns NaN silently.

Each test of a bad input also passes the nearest good one, which must be accepted.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import khot
from khot.errors import InvalidTypeError, InvalidValueError, KhotError
from khot.topk import topk_indices

NAN, INF = float("nan"), float("inf")
GOOD = torch.zeros(2, 4)


def sampler(logits, k, temperature=1.0):
    return khot.nn.SubsetSampler(k, temperature)(logits)


WITH_TEMPERATURE: dict[str, Callable] = {
    "successive_softmax": khot.successive_softmax,
    "neuralsort": khot.neuralsort,
    "softsort": khot.softsort,
    "capped_simplex": khot.capped_simplex,
    "sample_subset": khot.sample_subset,
    "SubsetSampler": sampler,
    "RelaxedSubset": khot.RelaxedSubset,
    "RelaxedOrderedSubset": khot.RelaxedOrderedSubset,
}
WITH_K: dict[str, Callable] = {
    "hard_topk": khot.hard_topk,
    "topk_indices": topk_indices,
    "Subset": khot.Subset,
    "OrderedSubset": khot.OrderedSubset,
    **{name: lambda x, k, f=f: f(x, k, 1.0) for name, f in WITH_TEMPERATURE.items()},
}
ROWS: dict[str, Callable] = {"reservoir_keys": khot.reservoir_keys}
WITH_LOGITS: dict[str, Callable] = {
    "gumbel_keys": khot.gumbel_keys,
    **{name: lambda x, f=f: f(x, 1) for name, f in WITH_K.items()},
}


def each(table: dict[str, Callable]):
    return pytest.mark.parametrize("function", table.values(), ids=table.keys())


@each(WITH_LOGITS)
@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_nan_and_positive_infinity(function: Callable, bad: float, dtype: torch.dtype):
    keys = GOOD.to(dtype).clone()
    keys[1, 2] = bad
    with pytest.raises(InvalidValueError, match=rf"(keys|logits) must be finite.*{bad} at index \(1, 2\)"):
        function(keys)
    for good in (-INF, torch.finfo(dtype).max):
        keys[1, 2] = good
        function(keys)


@each(WITH_LOGITS | ROWS)
@pytest.mark.parametrize(
    ("bad", "good", "error", "message"),
    [
        (torch.zeros(2, 0), torch.zeros(2, 1), InvalidValueError, r"at least one item.*shape \(2, 0\)"),
        (torch.tensor(1.0), torch.tensor([1.0]), InvalidValueError, r"at least one item.*shape \(\)"),
        (torch.zeros(4, dtype=torch.int64), torch.zeros(4), InvalidTypeError, "floating-point.*int64"),
        (torch.zeros(4, dtype=torch.bool), torch.zeros(4).half(), InvalidTypeError, "floating-point.*bool"),
        ([0.0, 1.0], torch.tensor([0.0, 1.0]), InvalidTypeError, "must be a torch.Tensor.*list"),
        (np.zeros(4), torch.from_numpy(np.zeros(4)), InvalidTypeError, "must be a torch.Tensor.*ndarray"),
        (None, torch.zeros(0, 4), InvalidTypeError, "must be a torch.Tensor.*NoneType"),
    ],
)
def test_not_a_row_of_items(function: Callable, bad: object, good: torch.Tensor, error: type, message: str):
    with pytest.raises(error, match=message) as caught:
        function(bad)
    assert isinstance(caught.value, KhotError)
    function(good)


@each(WITH_K)
@pytest.mark.parametrize(
    ("bad", "good", "error", "message"),
    [
        (5, 4, InvalidValueError, "k must lie between 0 and the number of items, 4, but got 5"),
        (-1, 0, InvalidValueError, "k must .*but got -1"),
        (2.0, 2, InvalidTypeError, "k must be an int.*2.0.*float"),
        (True, 1, InvalidTypeError, "k must be an int.*True.*bool"),
        (None, np.int8(3), InvalidTypeError, "k must be an int.*None"),
        ("2", np.uint64(2), InvalidTypeError, "k must be an int.*'2'"),
    ],
)
def test_bad_k(function: Callable, bad: object, good: int, error: type, message: str):
    with pytest.raises(error, match=message):
        function(GOOD, bad)
    function(GOOD, good)


OPERATORS = {
    name: WITH_K[name] for name in ("hard_topk", "topk_indices", "successive_softmax", "sample_subset", "neuralsort")
}


@each(OPERATORS)
@pytest.mark.parametrize(
    ("bad", "good", "error", "message"),
    [
        ([1, 5], [1, 4], InvalidValueError, r"k must lie between 0 and .* 4, but got 5 at index \(1,\)"),
        ([-1, 1], [0, 1], InvalidValueError, "but got -1"),
        ([1.0, 2.0], [1, 2], InvalidTypeError, "integer tensor.*float32"),
        ([True, False], [1, 0], InvalidTypeError, "integer tensor.*bool"),
        ([1, 2, 3], [1, 2], InvalidValueError, r"k must .* shape \(2,\), but got shape \(3,\)"),
        ([[1], [2]], 2, InvalidValueError, r"k must .* shape \(2,\), but got shape \(2, 1\)"),
    ],
)
def test_bad_k_of_each_row(function: Callable, bad: list, good: object, error: type, message: str):
    with pytest.raises(error, match=message):
        function(GOOD, torch.tensor(bad))
    function(GOOD, torch.tensor(good))


def test_distributions_want_one_k():
    for law in (khot.Subset, khot.OrderedSubset):
        with pytest.raises(InvalidTypeError, match="k must be an int in a distribution"):
            law(GOOD, torch.tensor([1, 2]))
        assert law(GOOD, 2).batch_shape == (2,)


@each(WITH_TEMPERATURE)
@pytest.mark.parametrize(
    ("bad", "good", "error", "message"),
    [
        (0, 1e-3, InvalidValueError, "temperature must be positive.*got 0"),
        (-1.0, 1, InvalidValueError, "temperature must be positive.*got -1"),
        (NAN, np.float32(0.5), InvalidValueError, "temperature must be positive.*got nan"),
        (INF, 1e6, InvalidValueError, "temperature must be positive.*got inf"),
        (None, 1.0, InvalidTypeError, "temperature must be a number.*None"),
        ("1", 1, InvalidTypeError, "temperature must be a number.*'1'"),
        (True, 1.0, InvalidTypeError, "temperature must be a number.*True"),
    ],
)
def test_bad_temperature(function: Callable, bad: object, good: float, error: type, message: str):
    with pytest.raises(error, match=message):
        function(GOOD, 2, bad)
    function(GOOD, 2, good)


@pytest.mark.parametrize(
    ("bad", "good", "error", "message"),
    [
        ([1.0, 0.0], [1.0, 0.1], InvalidValueError, r"temperature must be positive.*0.0 at index \(1,\)"),
        (NAN, 1.0, InvalidValueError, "temperature must be positive.*nan"),
        ([1, 2], [1.0, 2.0], InvalidTypeError, "floating-point tensor.*int64"),
        ([1.0] * 3, [1.0] * 2, InvalidValueError, r"temperature must .* shape \(2,\), but got shape \(3,\)"),
    ],
)
def test_bad_temperature_of_each_row(bad: object, good: object, error: type, message: str):
    for name in ("successive_softmax", "neuralsort", "softsort", "capped_simplex", "sample_subset", "RelaxedSubset"):
        with pytest.raises(error, match=message):
            WITH_TEMPERATURE[name](GOOD, 2, torch.tensor(bad))
        WITH_TEMPERATURE[name](GOOD, 2, torch.tensor(good))


@pytest.mark.parametrize(("bad", "good"), [(-1.0, 0.0), (NAN, 1.0), (INF, 3e38), (-INF, 1e-38)])
def test_bad_weights(bad: float, good: float):
    with pytest.raises(InvalidValueError, match="weights must be finite and >= 0, but got"):
        khot.reservoir_keys(torch.tensor([1.0, bad]))
    assert not khot.reservoir_keys(torch.tensor([1.0, good])).isnan().any()


@pytest.mark.parametrize(("bad", "good"), [((-1,), (0,)), ((2.5,), (2,)), (("a",), [3]), (2.5, 2), (None, ()), (-3, 3)])
def test_bad_sample_shape(bad: object, good: object):
    for draw in (
        lambda shape: khot.sample_subset(GOOD, 1, 1.0, sample_shape=shape),
        lambda shape: khot.Subset(GOOD, 1).sample(shape),
        lambda shape: khot.RelaxedSubset(GOOD, 1, 1.0).rsample(shape),
    ):
        with pytest.raises(InvalidValueError, match="sample_shape must hold non-negative ints"):
            draw(bad)
        assert draw(good).shape == (*np.atleast_1d(np.array(good, int)), *GOOD.shape)


def test_bad_relaxation():
    for make in (
        lambda relaxation: khot.sample_subset(GOOD, 1, 1.0, relaxation=relaxation),
        lambda relaxation: khot.nn.SubsetSampler(1, 1.0, relaxation),
        lambda relaxation: khot.RelaxedSubset(GOOD, 1, 1.0, relaxation),
    ):
        for bad, good in (("softsort", "softsort$"), ("soft", "successive_softmax, for example"), (None, "successive")):
            with pytest.raises(InvalidTypeError, match=rf"relaxation must be a function .*: pass khot\.{good}"):
                make(bad)
        make(khot.softsort)


def test_bad_generator():
    for draw in (
        lambda generator: khot.gumbel_keys(GOOD, generator),
        lambda generator: khot.Subset(GOOD, 1).sample(generator=generator),
    ):
        for bad in (0, "seed"):
            with pytest.raises(InvalidTypeError, match="generator must be"):
                draw(bad)
        draw(torch.Generator().manual_seed(0))


def are_logits(row: list[float]) -> bool:
    return len(row) > 0 and all(x < INF for x in row)


HOSTILE = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, -INF])
)


@each({name: f for name, f in WITH_TEMPERATURE.items() if not name.startswith("Relaxed")})
@given(row=st.lists(HOSTILE, min_size=0, max_size=6), k=st.integers(-1, 7), temperature=HOSTILE)
def test_valid_rows_give_a_valid_vector_and_others_an_error(
    function: Callable, row: list[float], k: int, temperature: float
):
    keys = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    if not (are_logits(row) and 0 <= k <= len(row) and 0 < temperature < INF):
        with pytest.raises(KhotError):
            function(keys, k, temperature)
        return
    a = function(keys, k, temperature)
    assert a.isfinite().all()
    assert (a >= 0).all()
    assert abs(a.sum().item() - min(k, int((keys > -INF).sum()))) < 1e-6
    a.square().sum().backward()
    assert keys.grad.isfinite().all()


@each({name: WITH_K[name] for name in ("Subset", "OrderedSubset", "RelaxedSubset", "RelaxedOrderedSubset")})
@given(row=st.lists(HOSTILE, min_size=0, max_size=5), k=st.integers(-1, 6))
def test_valid_rows_give_a_distribution_and_others_an_error(function: Callable, row: list[float], k: int):
    logits = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    present = sum(x > -INF for x in row)
    if not (are_logits(row) and 0 <= k <= present):
        with pytest.raises(KhotError):
            function(logits, k)
        return
    law = function(logits, k)
    sample = law.sample(generator=torch.Generator().manual_seed(0))
    assert law.support.check(sample).all()
    if law.has_rsample:
        return
    log_p = law.log_prob(sample)
    assert not log_p.isnan()
    assert log_p <= 1e-12
    quantities = [log_p, law.entropy()] + (
        [law.inclusion_probs.square().sum()] if hasattr(law, "inclusion_probs") else []
    )
    assert all(quantity.isfinite() for quantity in quantities[1:])
    for quantity in quantities:
        if quantity.requires_grad:
            (grad,) = torch.autograd.grad(quantity, logits, retain_graph=True)
            assert grad.isfinite().all()


@each({"gumbel_keys": khot.gumbel_keys, "reservoir_keys": khot.reservoir_keys})
@given(row=st.lists(HOSTILE, min_size=0, max_size=5))
def test_valid_rows_give_keys_and_others_an_error(function: Callable, row: list[float]):
    values, seed = torch.tensor(row, dtype=torch.float64, requires_grad=True), torch.Generator().manual_seed(0)
    if not (are_logits(row) and (function is khot.gumbel_keys or all(weight >= 0 for weight in row))):
        with pytest.raises(KhotError):
            function(values, seed)
        return
    keys = function(values, seed)
    assert (keys < INF).all()
    absent = values.detach() == (-INF if function is khot.gumbel_keys else 0)
    assert torch.equal(keys == -INF, absent)


def test_narrow_integer_dtypes_of_k_do_not_wrap():
    keys = torch.zeros(2, 300)
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
        assert khot.hard_topk(keys, torch.tensor([100, 3], dtype=dtype)).sum(-1).tolist() == [100, 3]


@pytest.mark.parametrize("relaxation", [khot.successive_softmax, khot.softsort, khot.neuralsort, khot.capped_simplex])
def test_a_tensor_k_that_cannot_be_read_gives_nan_where_it_is_bad(relaxation):
    keys = torch.tensor([1.0, 2.0, 3.0])
    vectors = torch.func.vmap(lambda k: relaxation(keys, k, 0.5))(torch.tensor([-1, 4, 2]))
    assert vectors[:2].isnan().all()
    assert torch.allclose(vectors[2], relaxation(keys, 2, 0.5))


def test_single_entries_need_an_index():
    with pytest.raises(khot.errors.InvalidTypeError, match="index must be an integer tensor, but got NoneType"):
        khot.successive_softmax_at(torch.randn(4, 20), 2, 0.5, None)  # type: ignore[arg-type]
