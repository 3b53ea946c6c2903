"""Whether this process is a fork of another. `import khot` begins to watch, long before a compiled loop is loaded."""

import os

FORKED: list[bool] = []
"""Not empty in a process that was forked: threads of its parent, such as those of OpenMP, are not there."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork either
    os.register_at_fork(after_in_child=lambda: FORKED.append(True))
