"""The errors that khot raises. Each one is also the built-in error that callers already catch."""

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
    """An argument has the right type, but its value or shape cannot be used."""


class InvalidTypeError(KhotError, TypeError):
    """An argument has the wrong type."""


class DataFileError(KhotError, OSError):
    """A data file is damaged or cannot be read."""


class DownloadError(DataFileError):
    """A file of a dataset is not on this machine and cannot be downloaded."""


class ModelFileError(KhotError, OSError):
    """A saved model is missing, damaged, or does not fit."""


class NotAvailableError(KhotError, NotImplementedError):
    """A quantity has no exact form, or none that is feasible; the message names an alternative."""


class DivergedError(KhotError, FloatingPointError):
    """The loss or the weights of a training are no longer finite.

    Attributes
    ----------
    what : str
        What is not finite, and when.
    checkpoint : path or None
        The last good checkpoint, if there is one.
    hint : str
        What to do.
    """

    def __init__(
        self,
        what: str,
        checkpoint: object = None,
        hint: str = "try a smaller learning_rate or a clip_norm, or look for log(0) and 0/0 in the loss",
    ) -> None:
        super().__init__(what, checkpoint, hint)
        self.what: str = what
        self.checkpoint: object = checkpoint
        self.hint: str = hint

    def __str__(self) -> str:
        saved = "" if self.checkpoint is None else f"; the last good checkpoint is {self.checkpoint}"
        return f"{self.what}{saved}: {self.hint}"


class RunFolderError(KhotError, OSError):
    """A folder cannot hold this training: it holds another one, or only damaged checkpoints."""


class BlackBoxError(KhotError, ValueError):
    """A model to be explained raised an error, or its outputs cannot be used."""


def one_line(error: BaseException) -> str:
    """The message of an error on one line, to be quoted in another message."""
    return " ".join(str(error).split())
