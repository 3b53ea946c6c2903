"""How long something takes, and how long processors work on it."""

import time

from khot.training._snapshot import Progress


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def add_to(self, progress: Progress) -> None:
        """Add the time since then."""
        progress.seconds += time.perf_counter() - self._began[0]
        progress.processor_seconds += time.process_time() - self._began[1]
