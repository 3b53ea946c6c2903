import os

import pytest


@pytest.fixture(autouse=True)
def _impatient_disk(monkeypatch: pytest.MonkeyPatch):
    """Waiting for the disk guards against power cuts only, which are not tested."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
