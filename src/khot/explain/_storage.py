"""A fitted explainer on disk, and back."""

import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from torch import nn

from khot._estimators.storage import EXPLAINER, discard, load_weights, read_parts, reading, weights_of, write_parts
from khot.errors import InvalidTypeError, ModelFileError
from khot.explain import maskers
from khot.explain._fitting import new_networks

_SELECTOR, _PREDICTOR = "selector/", "predictor/"
_ATTRIBUTES = ("temperature_", "classes_", "seen_", "history_", "seconds_", "limits_", "class_names")


def write(folder: Path, explainer: Any) -> None:
    """Write a fitted explainer."""
    numbers = {
        "k": explainer.k,
        "for_class": explainer.for_class,
        "sampler": explainer.sampler if isinstance(explainer.sampler, str) else None,
        "masker": _state(explainer.masker_),
        "own": {name: getattr(explainer, name) is not None for name in ("selector", "predictor")},
        "search": [[t, loss if loss < math.inf else None] for t, loss in explainer.search_.items()],  # as JSON has it
        **{name: getattr(explainer, name) for name in _ATTRIBUTES},
    }
    module = explainer.module_
    tensors = weights_of(module.selector, _SELECTOR) | weights_of(module.predictor, _PREDICTOR)
    write_parts(folder, EXPLAINER, numbers, tensors)
    discard(folder, EXPLAINER)


def read(folder: Path, make: Any, masker: Any, selector: nn.Module | None, predictor: nn.Module | None) -> Any:
    """The explainer ``make(k, masker=..., ...)`` with what was written."""
    numbers, tensors = read_parts(folder, EXPLAINER)
    with reading(folder):
        state, own, sampler = numbers["masker"], numbers["own"], numbers["sampler"] or "subset"
        found = _restored(state) if state is not None else masker
        needs = {"masker": state is None, "selector": own["selector"], "predictor": own["predictor"]}
        k, options = numbers["k"], {"temperature": numbers["temperature_"], "for_class": numbers["for_class"]}
    for name, given in (("masker", masker), ("selector", selector), ("predictor", predictor)):
        needed = needs[name]
        if needed != (given is not None):
            hint = f"pass such a one as {name}" if needed else f"do not pass a {name}"
            raise ModelFileError(f"{folder} was saved {'with' if needed else 'without'} a {name} of your own: {hint}")
    with reading(folder):
        own_networks = {"selector": selector, "predictor": predictor}
        explainer = make(k, masker=found, **own_networks, sampler=sampler, **options)
        for name in _ATTRIBUTES:
            setattr(explainer, name, numbers[name])
        explainer.search_ = {t: math.inf if loss is None else loss for t, loss in numbers["search"]}
        explainer.masker_ = found
        module = new_networks(explainer, numbers["classes_"])
    load_weights(folder, module.selector, tensors, _SELECTOR)
    load_weights(folder, module.predictor, tensors, _PREDICTOR)
    explainer.module_, explainer.predict_proba_ = module, None
    return explainer


def _state(masker: Any) -> dict[str, Any] | None:
    """The name and all fields of a masker of khot, None for one of yours."""
    if getattr(maskers, type(masker).__name__, None) is not type(masker):
        return None
    values = {field.name: getattr(masker, field.name) for field in fields(masker)}
    for name, value in values.items():
        if not isinstance(value, int | float | str | list | tuple | None):
            raise InvalidTypeError(
                f"{name} of the masker must be numbers, texts or lists to be saved, but got {value!r}: convert it"
            )
    return {"name": type(masker).__name__, "fields": values}


def _restored(state: dict[str, Any]) -> Any:
    kind = getattr(maskers, state["name"])
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise TypeError(f"{state['name']} is no masker")
    given = {field.name: state["fields"][field.name] for field in fields(kind) if field.init}
    masker: Any = kind(**given)
    for field in fields(kind):
        if not field.init:
            setattr(masker, field.name, state["fields"][field.name])
    return masker
