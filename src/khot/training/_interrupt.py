"""Ctrl-C that waits for the end of the step, so that checkpoints are complete."""

import signal
import threading
from types import FrameType
from typing import Any


class ControlC:
    """Context in which the first Ctrl-C only sets `pressed`, and the second one interrupts at once.

    >>> with ControlC() as control_c:
    ...     signal.raise_signal(signal.SIGINT)
    >>> control_c.pressed
    True
    """

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __enter__(self) -> "ControlC":
        if threading.current_thread() is threading.main_thread():  # others do not receive signals
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
