"""Detection of forks. It starts with `import khot`, long before a compiled loop is loaded."""

import os

FORKED: list[bool] = []
"""Not empty in a forked process, which has none of the threads of its parent, such as those of OpenMP."""

if hasattr(os, "register_at_fork"):  # missing on Windows, which has no forks
    os.register_at_fork(after_in_child=lambda: FORKED.append(True))
