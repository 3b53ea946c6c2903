from tests.fixtures import impatient_disk  # noqa: F401
