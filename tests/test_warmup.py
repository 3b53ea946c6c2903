"""`khot warmup` compiles all there is, so that nothing is left to be compiled later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
import khot
from khot._jit import cache

WARMUP = "from khot.cli import main; main(['warmup'])"
SOME = "import torch, khot; khot.reservoir_keys(torch.ones(3))"
ALL = """
import torch, khot
from khot._jit.compiler import KERNELS
for dtype in (torch.float32, torch.float64):
    for shape, k in (((3, 20), 4), ((200, 300), 7), ((1, 200_000), 50)):
        keys = khot.gumbel_keys(torch.zeros(shape, dtype=dtype)).requires_grad_()
        for t in (0.05, 0.3, 1.0, torch.tensor(2.0, requires_grad=True)):
            khot.successive_softmax(keys, k, t).sum().backward()
            khot.successive_softmax(keys, k, t, ordered=True).sum().backward()
        index = torch.zeros(*shape[:1], k, dtype=torch.int64)
        khot.successive_softmax_at(keys, k, 1.0, index).sum().backward()
        khot.capped_simplex(keys, k, 1.0).sum().backward()
    khot.sample_subset(torch.zeros(50, dtype=dtype, requires_grad=True), 3, 0.5).sum().backward()
    khot.reservoir_keys(torch.ones(3, dtype=dtype))
    khot.sample_indices([1.0, 2.0, 3.0], 2)
    khot.sample_indices(None, 2, log_weights=[1.0, 2.0, 3.0])
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS))
"""


def run(*command: str, folder: Path, **environment: str) -> str:
    there = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=there).stdout


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.nb?")}


@pytest.mark.slow
def test_nothing_is_left_to_be_compiled(tmp_path: Path):
    printed = run(sys.executable, "-c", WARMUP, folder=tmp_path)
    assert "compiled 0 loops" not in printed
    assert str(tmp_path) in printed
    before = files(tmp_path)
    assert run(sys.executable, "-c", ALL, folder=tmp_path).strip() == "0"
    assert files(tmp_path) == before
    assert "compiled 0 loops" in run(sys.executable, "-c", WARMUP, folder=tmp_path)


@pytest.mark.skipif(not cache._levels_of_this_machine(), reason="no x86-64 of a known level")
def test_code_for_a_level_serves_processors_that_have_its_features(tmp_path: Path):
    level = cache._levels_of_this_machine()[-1]
    run(sys.executable, "-c", SOME, folder=tmp_path, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES=cache.features_of(level))
    before = files(tmp_path)
    assert before
    run(sys.executable, "-c", SOME, folder=tmp_path)
    assert files(tmp_path) == before


def test_code_for_a_level_that_this_processor_lacks_is_not_used(tmp_path: Path):
    level = "x86-64-v2"
    run(sys.executable, "-c", SOME, folder=tmp_path, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES=cache.features_of(level))
    before = files(tmp_path)
    lacking = "from khot._jit import cache\ncache._levels_of_this_machine = lambda: []\n"
    run(sys.executable, "-c", lacking + SOME, folder=tmp_path)
    assert files(tmp_path) != before
    assert set(files(tmp_path)) > set(before)


def test_unknown_dtypes_are_refused():
    for dtypes in ((), None, ("float16",)):
        with pytest.raises((khot.errors.InvalidTypeError, khot.errors.InvalidValueError), match="float32"):
            khot.warmup(dtypes)  # type: ignore[arg-type]
