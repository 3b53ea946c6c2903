"""Public datasets by name, as NumPy arrays.

Files come from a local folder, the user's cache, or a download with a checksum.
"""

from khot.datasets.load import NAMES, load
from khot.datasets.rows import Dataset, Rows
from khot.datasets.split import split

__all__ = ["NAMES", "Dataset", "Rows", "load", "split"]
