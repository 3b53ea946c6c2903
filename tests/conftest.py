"""Property tests are reproducible: the same examples every time, and no deadline on a slow machine."""

from hypothesis import settings

settings.register_profile("khot", deadline=None, derandomize=True)
settings.load_profile("khot")
