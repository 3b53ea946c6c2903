"""A fitted explainer on disk, and back."""

import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from torch import nn

from khot import _relaxations
from khot._estimators.storage import EXPLAINER, discard, load_weights, read_parts, reading, weights_of, write_parts
from khot.errors import InvalidTypeError, ModelFileError
from khot.explain import _inputs, maskers
from khot.explain._fitting import check_parameters
from khot.explain._module import new_module

_NETWORKS = ("selector", "predictor")
_ATTRIBUTES = ("temperature_", "classes_", "seen_", "history_", "seconds_", "limits_")


def write(folder: Path, explainer: Any) -> None:
    """Write a fitted explainer."""
    numbers = {
        "k": int(explainer.k),
        "for_class": bool(explainer.for_class),
        "sampler": explainer.sampler if isinstance(explainer.sampler, str) else None,
        "relaxation": _relaxations.name_to_save(explainer.relaxation),
        "class_names": _inputs.class_names(explainer.class_names),
        "masker": _state(explainer.masker_),
        "own": {name: getattr(explainer, name) is not None for name in _NETWORKS},
        "search": [[t, loss if loss < math.inf else None] for t, loss in explainer.search_.items()],  # as JSON has it
        **{name: getattr(explainer, name) for name in _ATTRIBUTES},
    }
    selector, predictor = (weights_of(getattr(explainer.module_, name), f"{name}/") for name in _NETWORKS)
    write_parts(folder, EXPLAINER, numbers, selector | predictor)
    discard(folder, EXPLAINER)


def read(folder: Path, kind: type[Any], masker: Any, selector: nn.Module | None, predictor: nn.Module | None) -> Any:
    """An explainer of the class `kind` with what was written."""
    numbers, tensors = read_parts(folder, EXPLAINER)
    with reading(folder):
        found = masker if numbers["masker"] is None else _restored(numbers["masker"])
        own = {"masker": numbers["masker"] is None, **{name: numbers["own"][name] for name in _NETWORKS}}
    for name, given in {"masker": masker, "selector": selector, "predictor": predictor}.items():
        if own[name] and given is None:
            raise ModelFileError(f"{folder} was saved with a {name} of your own: pass one of the same kind as {name}")
        if given is not None and not own[name]:
            raise ModelFileError(f"{folder} was saved without a {name} of your own: do not pass a {name}")
    with reading(folder):
        explainer = kind(
            numbers["k"],
            masker=found,
            selector=selector,
            predictor=predictor,
            sampler=numbers["sampler"] or "subset",
            relaxation=_relaxations.find(numbers.get("relaxation") or "successive_softmax"),
            for_class=numbers["for_class"],
            temperature=numbers["temperature_"],
            class_names=numbers["class_names"],
        )
        check_parameters(explainer)
        for name in _ATTRIBUTES:
            setattr(explainer, name, numbers[name])
        if "eligible" not in explainer.limits_:
            raise TypeError(f"limits_ is {explainer.limits_!r}")
        explainer.search_ = {t: math.inf if loss is None else loss for t, loss in numbers["search"]}
        explainer.masker_, explainer.predict_proba_ = found, None
        module = new_module(explainer, numbers["classes_"])
    for name in _NETWORKS:
        load_weights(folder, getattr(module, name), tensors, f"{name}/")
    explainer.module_ = module
    return explainer


def _state(masker: Any) -> dict[str, Any] | None:
    """Name and all fields of a masker of khot, None for a user's own."""
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
        raise TypeError(f"{state['name']} is not a masker")
    masker = object.__new__(kind)
    for field in fields(kind):
        setattr(masker, field.name, state["fields"][field.name])
    return masker
