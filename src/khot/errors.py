"""The errors that khot raises; each is also the built-in error that callers already catch."""

__all__ = [
    "BlackBoxError",
    "DataFileError",
    "DivergedError",
    "DownloadError",
    "InvalidTypeError",
    "InvalidValueError",
    "KhotError",
    "ModelFileError",
    "NotAvailableError",
    "RunFolderError",
]


class KhotError(Exception):
    """Base of every error that khot raises on purpose."""


class InvalidValueError(KhotError, ValueError):
    """An argument of the right type whose value or shape cannot be used."""


class InvalidTypeError(KhotError, TypeError):
    """An argument of the wrong type."""


class DataFileError(KhotError, OSError):
    """A file of a dataset that is damaged or cannot be read."""


class DownloadError(DataFileError):
    """A file of a dataset that is not there and cannot be downloaded."""


class ModelFileError(KhotError, OSError):
    """A saved model that is not there, is damaged, or does not fit."""


class NotAvailableError(KhotError, NotImplementedError):
    """A quantity that has no (feasible) exact form; the message says what to use instead."""


class DivergedError(KhotError, FloatingPointError):
    """A training whose loss or weights are no longer finite; `checkpoint` is the path of the last good one, or None."""

    def __init__(
        self,
        what: str,
        checkpoint: object = None,
        hint: str = "try a smaller learning_rate or a clip_norm, or look for log(0) and 0/0 in the loss",
    ) -> None:
        super().__init__(what, checkpoint, hint)
        self.what, self.checkpoint, self.hint = what, checkpoint, hint

    def __str__(self) -> str:
        there = "" if self.checkpoint is None else f"; the last good checkpoint is {self.checkpoint}"
        return f"{self.what}{there}: {self.hint}"


class RunFolderError(KhotError, OSError):
    """A folder that cannot serve as the folder of this run: it holds another one, or only damaged checkpoints."""


class BlackBoxError(KhotError, ValueError):
    """A model to be explained whose outputs cannot be used, or that raised an error."""


def one_line(error: BaseException) -> str:
    """What an error says, for a message of one line."""
    return " ".join(str(error).split())
