from tests.fixtures import impatient_disk, one_thread  # noqa: F401
