"""A message to users who wait for a compilation."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds
_LINE = "khot compiles its loops for this processor, once; `khot warmup` does it beforehand"
_said = threading.Event()


@contextmanager
def compiling() -> Iterator[None]:
    """Report once in a process that khot is compiling, if it takes longer than a second."""
    timer = threading.Timer(_PATIENCE, _say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say() -> None:
    if _said.is_set():
        return
    _said.set()
    if sys.stderr is not None and sys.stderr.isatty():
        print(_LINE, file=sys.stderr)
    else:
        logging.getLogger("khot").info(_LINE)
