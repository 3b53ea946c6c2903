"""`khot warmup`: compile all loops beforehand."""

import os
from typing import Annotated, Literal

from khot.cli.options import SEVERAL


def warmup(
    *,
    dtype: Annotated[tuple[Literal["float32", "float64"], ...], SEVERAL] = ("float32", "float64"),
    cpu: Literal["x86-64-v2", "x86-64-v3", "x86-64-v4"] | None = None,
) -> None:
    """Compile khot's loops for this processor and keep them on disk, so that no first call has to wait.

    For container images, cluster nodes and CI. The folder is the one that NUMBA_CACHE_DIR names, or else next to the
    installed package, or in the user's cache if that cannot be written.

    Parameters
    ----------
    dtype
        Dtypes of the keys.
    cpu
        Compile for every processor with the features of this level, instead of the one at hand. Other machines then use
        this code; those without these features compile their own.
    """
    if cpu is not None:
        from numba.core import config

        from khot._jit.cache import features_of

        os.environ |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features_of(cpu)}
        config.reload_config()

    from khot import warmup as compile_all

    done = compile_all(dtype)
    print(f"compiled {done.compiled} loops for {cpu or 'this processor'} in {done.seconds:.0f} processor seconds")
    print(f"{done.loaded} were there already")
    print(f"they are kept in {done.folder}" if done.folder else "they cannot be kept: no folder can be written")
