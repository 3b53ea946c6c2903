"""Options that several commands share."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from khot.errors import InvalidValueError


def _whole(_: type, tokens: Sequence[Token]) -> int:
    return int(tokens[0].value)  # int() of cyclopts rounds 1.5


SEVERAL = Parameter(consume_multiple=True, negative=())

WholeNumber = Annotated[int, Parameter(converter=_whole)]
WholeNumbers = Annotated[tuple[WholeNumber, ...], SEVERAL]
Numbers = Annotated[tuple[float, ...], SEVERAL]
Names = Annotated[tuple[str, ...], SEVERAL]
K = Annotated[WholeNumber, Parameter(name=["--k", "-k"])]
Out = Annotated[Path, Parameter(name=["--out", "-o"])]
Device = Literal["cpu", "cuda", "mps", "auto"]


@Parameter(name="*")
@dataclass(frozen=True)
class Training:
    """Parameters that all estimators share.

    Parameters
    ----------
    device
        Kind of device, such as cpu or cuda.
    random_state
        Seed of all random numbers.
    folder
        Folder for the checkpoints of the training, from which it can be resumed.
    resume
        Continue the training in --folder.
    """

    device: Device = "cpu"
    random_state: Annotated[WholeNumber, Parameter(name="--seed")] = 0
    folder: Path | None = None
    resume: bool = False

    def parameters(self) -> dict[str, Any]:
        """Parameters of an estimator, with a folder that stays the same if the working directory changes."""
        folder = self.folder and self.folder.expanduser().absolute()
        return {**vars(self), "folder": folder, "verbose": True}


def check_ignored(ignore: Sequence[str], columns: Collection[str], model: str) -> None:
    """Refuse to ignore one of the columns with which the model was fitted."""
    for name in ignore:
        if name in columns:
            raise InvalidValueError(f"--ignore must not name {name!r}, which the {model} was fitted with: drop it")
