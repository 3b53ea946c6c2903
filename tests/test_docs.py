"""Every public name is documented, and stands in the reference; the examples of the gallery stay short."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import khot

DOCS = Path(__file__).parents[1] / "docs"
LISTED = re.compile(r"^\.\. (?:current)?module:: ([\w.]+)$|^   (\w+)$|^\.\. py:data:: (\w+)$", re.MULTILINE)


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Dotted names and values of what a module and its public modules offer."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield from public_names(value)
        else:
            yield f"{module.__name__}.{name}", value


def names_of_the_reference() -> Iterator[tuple[str, Any]]:
    """Dotted names and values of the entries on the pages of the reference."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        module = khot
        for where, entry, data in LISTED.findall(page.read_text(encoding="utf-8")):
            if where:
                module = import_module(where)
            else:
                yield f"{module.__name__}.{entry or data}", getattr(module, entry or data)


APART = ("khot.reservoir.torch",)  # not imported by its package, which does not load torch
PUBLIC = {name: value for module in (khot, *map(import_module, APART)) for name, value in public_names(module)}


def test_every_public_name_is_in_the_reference():
    listed = [id(value) for _, value in names_of_the_reference()]
    assert [name for name, value in PUBLIC.items() if id(value) not in listed] == []


def test_the_reference_lists_only_public_names_and_each_once():
    entries = list(names_of_the_reference())
    assert [name for name, _ in entries if name not in PUBLIC] == []
    assert len({id(value) for _, value in entries}) == len(entries)


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if callable(value)])
def test_every_public_name_has_a_docstring_of_its_own(name: str):
    text = vars(PUBLIC[name])["__doc__"] if isinstance(PUBLIC[name], type) else PUBLIC[name].__doc__
    assert text
    assert not text.startswith(f"{PUBLIC[name].__name__}(")  # what dataclasses make up


@pytest.mark.parametrize("script", sorted((DOCS / "gallery").glob("*.py")), ids=lambda script: script.stem)
def test_examples_of_the_gallery_are_short(script: Path):
    assert len(script.read_text(encoding="utf-8").splitlines()) < 60
