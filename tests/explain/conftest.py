import os

import pytest
import torch


@pytest.fixture(autouse=True)
def _impatient_disk(monkeypatch: pytest.MonkeyPatch):
    """Waiting for the disk guards against power cuts only, which are not tested."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture(autouse=True)
def _one_thread():
    """On networks this small, a second thread costs more than it brings."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
