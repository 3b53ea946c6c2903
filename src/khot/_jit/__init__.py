"""Compiled CPU loops (Numba). Serial and without the GIL; `pool` runs them on blocks of rows. Not public.

Numba compiles a kernel when it is first called and keeps it on disk, next to the source or in the user's cache.
"""

import importlib.util

AVAILABLE = importlib.util.find_spec("numba") is not None
