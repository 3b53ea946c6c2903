"""Numbers on the command line."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token


def _whole(_: type, tokens: Sequence[Token]) -> int:
    return int(tokens[0].value)  # int() of cyclopts rounds 1.5


WholeNumber = Annotated[int, Parameter(converter=_whole)]
