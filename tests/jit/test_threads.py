"""Work over threads: done once each, the same whatever their number, and alive after errors and forks."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import khot
from khot._jit import threads
from khot._jit.compiler import allocates, kernel
from khot._jit.threads import in_blocks

F32, F64 = torch.float32, torch.float64
LONG = 200_000
TIMEOUT = 60  # seconds, after which something hangs

pytestmark = pytest.mark.usefixtures("restore_threads")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def problem(shape: tuple[int, ...], dtype: torch.dtype = F32, seed: int = 0) -> torch.Tensor:
    return khot.gumbel_keys(torch.zeros(shape, dtype=dtype), seeded(seed))


def value_and_gradient(keys: torch.Tensor, k: Any = 4, temperature: Any = 1.0) -> tuple[np.ndarray, np.ndarray]:
    leaf = keys.clone().requires_grad_()
    value = khot.successive_softmax(leaf, k, temperature)
    value.backward(torch.randn(keys.shape, dtype=keys.dtype, generator=seeded(1)))
    return value.detach().numpy(), leaf.grad.numpy()


def assert_same(got: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> None:
    for x, y in zip(got, expected, strict=True):
        assert np.array_equal(x, y)


@kernel
@allocates
def mark(first, last, times):
    for i in range(first, last):
        times[i] += 1
    return first


@kernel
@allocates
def exhaust(first, last, times):
    return len(np.empty(2**59)) if first == 0 else last


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("work", [1, 300, 10**6])
def test_blocks_cover_the_range(number: int, work: int):
    torch.set_num_threads(number)
    for size in (0, 1, 2, 9, 1000):
        times = np.zeros(size, np.int64)
        lowest = in_blocks(mark, size, work, times)
        assert (times == 1).all()
        assert lowest == 0 or size == 0


def test_blocks_that_need_too_much_memory():
    torch.set_num_threads(2)
    for work in (1, 10**6):
        with pytest.raises(MemoryError):
            in_blocks(exhaust, 100, work, np.zeros(100, np.int64))


WITHOUT_OPENMP = """
from khot._jit import threads
threads._found["address"] = 0
import numpy as np, torch
from tests.jit.test_threads import mark, in_blocks
torch.set_num_threads(2)
times = np.zeros(1000, np.int64)
assert threads.available() == 1 and in_blocks(mark, 1000, 10**6, times) == 0 and (times == 1).all()
"""


def test_where_torch_has_no_such_threads():
    subprocess.run([sys.executable, "-c", WITHOUT_OPENMP], check=True, timeout=TIMEOUT)


WITHOUT_TORCH = """
import sys, numpy as np
from khot._jit import compiler, counter, passes, threads, vector_math
assert "torch" not in sys.modules and threads.available() == 1
"""


def test_the_compiler_loads_no_torch():
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=True, timeout=TIMEOUT)


@pytest.mark.skipif(sys.platform != "linux", reason="torch has other threads elsewhere")
def test_the_threads_of_torch_are_found():
    torch.set_num_threads(2)
    assert threads.available() == 2


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
@pytest.mark.parametrize("shape", [(37, 300), (3, 5000), (1, LONG)])
def test_results_do_not_depend_on_the_threads(shape: tuple[int, int], temperature: float, dtype: torch.dtype):
    keys = problem(shape, dtype)
    torch.set_num_threads(1)
    expected = value_and_gradient(keys, 4, temperature)
    for number in (2, 5):
        torch.set_num_threads(number)
        assert_same(value_and_gradient(keys, 4, temperature), expected)


AWKWARD = {
    "tied": torch.zeros(LONG),
    "mostly absent": torch.full((LONG,), -torch.inf).index_fill(0, torch.arange(0, LONG, LONG // 20), 1.0),
    "too short": torch.full((LONG,), -torch.inf).index_fill(0, torch.tensor([5, LONG - 1]), 1.0),
    "two leaders": problem((LONG,)).index_fill(0, torch.tensor([LONG // 2, LONG - 1]), 40.0),
    "a range of 1e6": problem((LONG,)) * 1e5,
    "descending": torch.linspace(20, -20, LONG),
}


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_long_rows_do_not_depend_on_the_threads(name: str, temperature: float, dtype: torch.dtype):
    keys = AWKWARD[name].to(dtype).unsqueeze(0)
    torch.set_num_threads(1)
    expected = value_and_gradient(keys, 4, temperature)
    torch.set_num_threads(2)
    assert_same(value_and_gradient(keys, 4, temperature), expected)


def test_a_row_does_not_depend_on_its_neighbours():
    torch.set_num_threads(2)
    keys, k = problem((24, 4000)), torch.arange(24) % 7
    temperature = torch.tensor([0.1, 1.0, 0.3, 0.7]).repeat(6)
    value, gradient = value_and_gradient(keys, k, temperature)
    cotangent = torch.randn(keys.shape, generator=seeded(1))
    for b in range(24):
        leaf = keys[b].clone().requires_grad_()
        alone = khot.successive_softmax(leaf, int(k[b]), float(temperature[b]))
        alone.backward(cotangent[b])
        assert_same((alone.detach().numpy(), leaf.grad.numpy()), (value[b], gradient[b]))


def test_python_threads_at_once():
    torch.set_num_threads(2)
    problems = [problem(shape, seed=seed) for seed in range(4) for shape in [(60, 500), (3, 5000), (1, LONG)]]
    expected = [value_and_gradient(keys) for keys in problems]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for got, wanted in zip(pool.map(value_and_gradient, problems), expected, strict=True):
                assert_same(got, wanted)


def child(keys: torch.Tensor, expected: tuple[np.ndarray, np.ndarray]) -> None:
    assert threads.available() == 1
    assert_same(value_and_gradient(keys), expected)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_in_a_forked_child():
    torch.set_num_threads(2)
    keys = problem((300, 100))  # enough for two threads, too little for torch's own, which do not survive a fork
    expected = value_and_gradient(keys)
    process = multiprocessing.get_context("fork").Process(target=child, args=(keys, expected))
    process.start()
    process.join(TIMEOUT)
    if process.is_alive():
        process.kill()
        pytest.fail("the child hangs")
    assert process.exitcode == 0
    assert_same(value_and_gradient(keys), expected)


LATE = """
import os, sys, torch, khot
torch.set_num_threads(2)
keys = torch.randn(1000, 400)
keys.exp()  # torch's threads are at work in the parent, khot's loops are not loaded
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(round(float(khot.successive_softmax(keys, 5, 1.0).numpy().sum())), flush=True)
os._exit(0)  # as children of multiprocessing end: torch would wait for a thread of its parent
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_loops_that_are_first_loaded_in_a_forked_child():
    found = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert found.stdout == "5000\n"


class Samples(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return value_and_gradient(problem((60, 500), seed=index))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:This DataLoader will create:UserWarning")
@pytest.mark.parametrize("number", [1, 2])
def test_in_the_workers_of_a_data_loader(number: int):
    torch.set_num_threads(2)
    samples = Samples()
    expected = [samples[i] for i in range(len(samples))]
    loader = DataLoader(
        samples,
        batch_size=None,
        num_workers=2,
        multiprocessing_context="fork",
        timeout=TIMEOUT,
        worker_init_fn=lambda _: torch.set_num_threads(number),
    )
    for got, wanted in zip(loader, expected, strict=True):
        assert_same(tuple(np.asarray(x) for x in got), wanted)


AT_THE_END = """
import atexit, threading, time, torch, khot
torch.set_num_threads(2)
keys = torch.randn(60, 500)
khot.successive_softmax(keys, 4, 1.0)
atexit.register(lambda: print(khot.successive_softmax(keys, 4, 1.0).shape))
def late():
    threading.main_thread().join()
    time.sleep(0.2)
    print(khot.successive_softmax(keys, 4, 1.0).shape)
threading.Thread(target=late).start()
"""


def test_while_the_interpreter_ends():
    command = [sys.executable, "-c", AT_THE_END]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    assert done.stdout.count("torch.Size([60, 500])") == 2, done.stderr
