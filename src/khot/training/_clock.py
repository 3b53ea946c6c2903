"""Wall-clock time and processor time."""

import time

from khot.training._snapshot import Progress


class Clock:
    """Clock that starts when it is created."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def add_to(self, progress: Progress) -> None:
        """Add the time since the start."""
        progress.seconds += time.perf_counter() - self._began[0]
        progress.processor_seconds += time.process_time() - self._began[1]
