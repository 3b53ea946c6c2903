"""Compiled CPU loops (Numba). They run without the GIL, and `threads` divides them into blocks of rows. Not public.

Numba compiles a kernel when it is first called and keeps it on disk: see `cache`.
"""

import importlib.util
import os

AVAILABLE = importlib.util.find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
