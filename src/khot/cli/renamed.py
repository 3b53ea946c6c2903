"""Old names of command-line options, which work for one release with a warning."""

import warnings
from collections.abc import Sequence

NEW_NAMES = {"--run": "--folder"}


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """Replace old names of options by the new ones, with a warning.

    >>> with_new_names(["fit", "--folder", "trainings", "--", "--run"])
    ['fit', '--folder', 'trainings', '--', '--run']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*map(_with_new_name, arguments[:end]), *arguments[end:]]


def _with_new_name(argument: str) -> str:
    option, *value = argument.split("=", 1)
    if option not in NEW_NAMES:
        return argument
    new = NEW_NAMES[option]
    warnings.warn(f"{option} is now called {new}: rename the option", FutureWarning, stacklevel=2)
    return "=".join([new, *value])
