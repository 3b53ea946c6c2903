"""Settings of a run, apart from the module, the loss and the data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch.nn import Parameter

from khot import _checks
from khot._renamed import renamed
from khot.errors import InvalidTypeError, InvalidValueError
from khot.training.optimizers import Adam
from khot.training.rates import rate_at


@renamed(seed="random_state")
@dataclass(frozen=True)
class Settings:
    """How to train.

    A run takes ``epochs * (rows // batch_size)`` steps. Every epoch has a new permutation of the rows, and leaves out
    the last ones that do not fill a batch.

    Parameters
    ----------
    epochs : int
        Number of passes over the data.
    batch_size : int
        Number of rows in a step, of all processes together.
    learning_rate : float or callable
        A number, or a function of the step (counted from 0) such as `Cosine`, `OneCycle` and `WarmUp`, or those of
        `khot.schedules`.
    optimizer : callable
        Function from parameters to an optimizer, such as `SGD`, `Adam`, `AdamW` and `RMSprop`.
    temperature : float or callable
        Value of `step.temperature` in the loss: a number, or a function of the step such as those of `khot.schedules`.
    clip_norm : float, optional
        Largest norm of the gradient, to which longer ones are scaled down.
    averaging : float, optional
        Decay, such as 0.999, of a running mean of the weights, which is then validated and kept in their place.
    monitor : str, optional
        Name of the validation number that determines the best epoch. Among epochs with equal numbers, and without a
        validation, the training loss decides.
    maximize : bool
        Whether a larger monitored number is better.
    patience : int, optional
        Number of epochs without improvement after which the training stops.
    random_state : int
        Seed of the batches, of the noise of dropout and the like, and of `step.generator`.

    Examples
    --------
    >>> from khot.training import AdamW, Cosine, Settings, WarmUp
    >>> settings = Settings(epochs=20, optimizer=AdamW(), learning_rate=WarmUp(Cosine(1e-3, steps=2000), steps=100))
    >>> settings.rate_at(49)
    0.000499...
    """

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float | Callable[[int], float] = 1e-3
    optimizer: Callable[[Iterable[Parameter]], torch.optim.Optimizer] = field(default_factory=Adam)
    temperature: float | Callable[[int], float] = 1.0
    clip_norm: float | None = None
    averaging: float | None = None
    monitor: str | None = None
    maximize: bool = False
    patience: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        _checks.whole_number("epochs", self.epochs, least=1)
        _checks.whole_number("batch_size", self.batch_size, least=1)
        _checks.whole_number("random_state", self.random_state)
        _checks.function("optimizer", self.optimizer, "of the parameters")
        self.rate_at(0)
        self.temperature_at(0)
        if self.clip_norm is not None:
            _checks.positive("clip_norm", self.clip_norm)
        if self.averaging is not None:
            decay = _checks.positive("averaging", self.averaging)
            _checks.below_one("averaging", decay, "pass a decay, such as 0.999, or None")
        if self.patience is not None:
            _checks.whole_number("patience", self.patience, least=1)
        if not isinstance(self.monitor, str | None):
            raise InvalidTypeError(f"monitor must be a str or None, but got {self.monitor!r}: pass a name")
        if self.maximize and self.monitor is None:
            raise InvalidValueError("maximize needs a monitored number, but monitor is None: name that number")

    def rate_at(self, step: int) -> float:
        """Learning rate at `step`."""
        return rate_at(self.learning_rate, step)

    def temperature_at(self, step: int) -> float:
        """Temperature at `step`."""
        value = self.temperature(step) if callable(self.temperature) else self.temperature
        return _checks.positive("temperature", value)

    def better(self, value: float | None, best: float | None) -> bool:
        """Whether `value` is better than `best`. None stands for a number that is not finite, and is worst."""
        if value is None or best is None:
            return value is not None
        return value > best if self.maximize else value < best
