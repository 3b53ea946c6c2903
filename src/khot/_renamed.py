"""Old names of arguments and attributes, which work for one release with a warning."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from khot.errors import InvalidTypeError

Target = TypeVar("Target", bound=Callable)

_CHANGED_BY_NAME = ("__init__", "set_params")  # methods of a class that take its parameters


def renamed(**new_names: str) -> Callable[[Target], Target]:
    """Let a function, or the parameters of a class, take keyword arguments by their old names as well.

    Attributes with the old names can be read.

    The signature shows the new names only.

    >>> @renamed(max_epochs="epochs")
    ... def train(epochs=10):
    ...     return epochs
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     train(max_epochs=3)
    3
    """

    def decorate(target: Any) -> Any:
        if not isinstance(target, type):
            return _with_old_names(target, new_names)
        for name in _CHANGED_BY_NAME:
            if hasattr(target, name):
                setattr(target, name, _with_old_names(getattr(target, name), new_names))
        for old, new in new_names.items():
            setattr(target, old, _old_attribute(old, new))
        return target

    return decorate


def _old_attribute(old: str, new: str) -> property:
    def read(self: Any) -> Any:
        warnings.warn(f"{old} is now called {new}: rename the attribute", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)


def _with_old_names(function: Callable, new_names: dict[str, str]) -> Callable:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old in new_names.keys() & kwargs.keys():
            new = new_names[old]
            if new in kwargs:
                raise InvalidTypeError(f"{old} is now called {new}, but got both: pass {new} only")
            warnings.warn(f"{old} is now called {new}: rename the argument", FutureWarning, stacklevel=2)
            kwargs[new] = kwargs.pop(old)
        return function(*args, **kwargs)

    return call
