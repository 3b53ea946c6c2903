"""Property tests are reproducible: the same examples every time, and no deadline on a slow machine."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("khot", deadline=None, derandomize=True)
settings.load_profile("khot")


@pytest.fixture
def restore_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
