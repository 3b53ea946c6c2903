"""The property tests of all relaxations follow from khot's table of them: each is held to what it promises."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from khot._relaxations import RELAXATIONS as TABLE
from khot._relaxations import find
from tests import oracles


@dataclass(frozen=True)
class Relaxation:
    function: Callable[..., Any]
    oracle: Callable[..., Any]

    @property
    def ordered(self) -> bool:
        return "ordered" in inspect.signature(self.function).parameters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function.traits, name)  # pyright: ignore[reportFunctionMemberAccess]


RELAXATIONS = {name: Relaxation(find(name), getattr(oracles, name)) for name in TABLE}

all_relaxations = pytest.mark.parametrize("relaxation", RELAXATIONS.values(), ids=RELAXATIONS.keys())
ordered_relaxations = pytest.mark.parametrize(
    "relaxation",
    [r for r in RELAXATIONS.values() if r.ordered],
    ids=[name for name, r in RELAXATIONS.items() if r.ordered],
)
