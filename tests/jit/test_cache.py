"""Where compiled code cannot be kept on disk, and where there is no Numba to compile it."""

import os
import pickle
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

import khot
import khot._jit

FOLDER = "khot/_jit"
TIMEOUT = 60  # seconds
SMALL_KERNEL = """
import numpy as np
from khot.keys import _compiled
out = np.empty(3)
_compiled.exponential((1, 2), out)
print(_compiled.__file__, out)
"""
NO_SPACE = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"  # files of 100 bytes


def run(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a copy of the package that has not compiled anything yet."""
    nothing_compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(khot.__file__).parent, tmp_path / "site" / "khot", ignore=nothing_compiled)
    return tmp_path / "site"


@pytest.fixture
def nowhere(tmp_path: Path) -> str:
    """A path that cannot become a folder, not even for root."""
    file = tmp_path / "file"
    file.touch()
    return str(file / "below")


def forbid_pycache(package: Path) -> None:
    (package / FOLDER / "__pycache__").touch()


def variables(package: Path, nowhere: str, home: str) -> dict[str, str]:
    caches = {"NUMBA_CACHE_DIR": nowhere, "HOME": home, "XDG_CACHE_HOME": home, "LOCALAPPDATA": home}
    return {**caches, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}


def test_next_to_the_source_if_not_in_the_given_folder(package: Path, nowhere: str):
    assert run(SMALL_KERNEL, **variables(package, nowhere, home=nowhere)).startswith(str(package))
    assert list(package.glob(f"{FOLDER}/__pycache__/*.nbi"))


def test_in_the_home_if_the_package_is_read_only(package: Path, nowhere: str, tmp_path: Path):
    forbid_pycache(package)
    assert run(SMALL_KERNEL, **variables(package, nowhere, home=str(tmp_path / "home"))).startswith(str(package))
    assert list((tmp_path / "home").rglob("*.nbi"))


def test_if_nothing_can_be_written(package: Path, nowhere: str):
    forbid_pycache(package)
    assert run(SMALL_KERNEL, **variables(package, nowhere, home=nowhere)).startswith(str(package))


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
def test_if_the_disk_is_full(package: Path, nowhere: str):
    assert run(NO_SPACE + SMALL_KERNEL, **variables(package, nowhere, home=nowhere)).startswith(str(package))


@pytest.mark.parametrize(("kind", "content"), [("nbi", b""), ("nbc", b""), ("nbc", b"garbage\n")])
def test_if_a_file_is_damaged(package: Path, nowhere: str, kind: str, content: bytes):
    there = variables(package, nowhere, home=nowhere)
    expected = run(SMALL_KERNEL, **there)
    for file in package.glob(f"{FOLDER}/__pycache__/*.{kind}"):
        file.write_bytes(content)
    assert run(SMALL_KERNEL, **there) == expected


@pytest.mark.parametrize("gone", ["khot.topk.successive._compiled.near_and_far\nGone", "khot._jit.gone\nGone"])
def test_if_a_file_is_of_a_release_with_other_classes(package: Path, nowhere: str, gone: str):
    there = variables(package, nowhere, home=nowhere)
    expected = run(SMALL_KERNEL, **there)
    for file in package.glob(f"{FOLDER}/__pycache__/*.nbi"):
        file.write_bytes(pickle.dumps(version("numba")) + f"c{gone}\n.".encode())  # a reference to a global name
    assert run(SMALL_KERNEL, **there) == expected


@pytest.mark.parametrize("changed", ["_jit/vector_math.py", "keys/_compiled.py", "topk/successive/_compiled/nodes.py"])
def test_a_change_in_another_file_counts(package: Path, nowhere: str, changed: str):
    environment = variables(package, nowhere, home=nowhere)
    run(SMALL_KERNEL, **environment)
    (index,) = package.glob(f"{FOLDER}/__pycache__/*_fill_exponential*.nbi")
    before = index.read_bytes()
    run(SMALL_KERNEL, **environment)
    assert index.read_bytes() == before
    with (package / "khot" / changed).open("a") as file:
        file.write("\n")
    run(SMALL_KERNEL, **environment)
    assert index.read_bytes() != before


def test_processes_that_compile_at_once(tmp_path: Path):
    """Both find no index; the one that was first to write its code is last to write its index."""
    from khot._jit.cache import _Files

    one, other = (_Files(str(tmp_path), "function", "stamp") for _ in range(2))
    one.save("signature", "code")
    index = (tmp_path / "function.nbi").read_bytes()
    one.flush()
    other.save("other signature", "other code")
    assert other.load("other signature") == "other code"
    (tmp_path / "function.nbi").write_bytes(index)
    assert other.load("signature") == "code"


PROBLEMS = [
    (shape, k, temperature)
    for shape in [(37, 300), (3, 5000), (10, 20)]
    for k, temperature in [(0, 1.0), (1, 0.3), (4, 0.1), (4, 1.0), (9, 5.0)]
]


def relaxed() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Results and gradients of float32 problems."""
    random, results = torch.Generator().manual_seed(0), []
    for shape, k, temperature in PROBLEMS:
        keys = torch.randn(shape, generator=random).mul(3).requires_grad_()
        value = khot.successive_softmax(keys, k, temperature)
        value.backward(torch.randn(shape, generator=random))
        results.append((value.detach(), keys.grad))
    return results


def without_numba(path: str) -> None:
    """What a child does; it leaves its results in a file."""
    assert not khot._jit.AVAILABLE
    torch.save(relaxed(), path)
    leaf = torch.ones(1000, requires_grad=True)
    gumbel, reservoir = (
        keys(leaf, torch.Generator().manual_seed(0)) for keys in (khot.gumbel_keys, khot.reservoir_keys)
    )
    assert len(gumbel.unique()) == 1000
    assert torch.equal(gumbel.argsort(), reservoir.argsort())
    (gumbel + reservoir).sum().backward()
    torch.testing.assert_close(leaf.grad, 1 - reservoir.detach())
    assert "khot.keys._compiled" not in sys.modules
    assert "khot.topk.successive._compiled.tables" not in sys.modules


def test_without_numba(tmp_path: Path):
    path = str(tmp_path / "results")
    block = "import sys; sys.modules['numba'] = None; from tests.jit import test_cache; "
    run(f"{block}test_cache.without_numba({path!r})", PYTHONPATH=str(Path(__file__).parents[2]))
    for problem, expected, got in zip(PROBLEMS, relaxed(), torch.load(path), strict=True):
        torch.testing.assert_close(got[0], expected[0], atol=1e-6, rtol=0, msg=str(problem))
        torch.testing.assert_close(got[1], expected[1], atol=1e-5, rtol=1e-5, msg=str(problem))


def test_kernels_use_only_what_their_stamp_covers():
    """A change anywhere that machine code was made of must make it stale."""
    from khot._jit import cache

    package, names = Path(khot.__file__).parent, set()
    for path in cache._SOURCES:
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] == ["from"] and words[1].startswith("khot"):
                names |= {f"{words[1]}.{word.strip(',()')}" for word in words[3:]} | {words[1]}
    modules = {package.parent / Path(*name.split(".")).with_suffix(".py") for name in names}
    assert {path for path in modules if path.exists()} <= set(cache._SOURCES)


def test_without_compilation_by_the_settings_of_numba():
    code = "import torch, khot; print(khot._jit.AVAILABLE, khot.sample_subset(torch.zeros(5), 2, 0.5, hard=True).sum())"
    assert run(code, NUMBA_DISABLE_JIT="1") == "False tensor(2.)\n"
