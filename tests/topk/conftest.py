"""Every test here runs on both paths: compiled loops, and torch operations as without Numba."""

from collections.abc import Iterator

import pytest

import khot
from khot import _jit

PATHS = ["compiled", "torch"]
HAVE_ONE_PATH = (khot.neuralsort, khot.softsort)


def pytest_generate_tests(metafunc: pytest.Metafunc):
    metafunc.fixturenames.append("path")
    metafunc.parametrize("path", PATHS)


def pytest_collection_modifyitems(items: list[pytest.Item]):
    items[:] = [item for item in items if not _runs_twice(item)]


def _runs_twice(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    relaxation = parameters.get("relaxation")
    return parameters.get("path") == "torch" and relaxation is not None and relaxation.function in HAVE_ONE_PATH


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _jit.AVAILABLE
    _jit.AVAILABLE = item.callspec.params.get("path") != "torch" if hasattr(item, "callspec") else before
    try:
        return (yield)
    finally:
        _jit.AVAILABLE = before
