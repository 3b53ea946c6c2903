"""Loading a dataset by its name."""

from khot.datasets import cifar10, digits, imdb, mnist, newsgroups
from khot.datasets.rows import Dataset
from khot.errors import InvalidValueError

_LOADERS = {
    "mnist": mnist.load_mnist,
    "fashion-mnist": mnist.load_fashion_mnist,
    "cifar10": cifar10.load,
    "imdb": imdb.load,
    "20newsgroups-w100": newsgroups.load,
    "digits": digits.load,
}
NAMES = tuple(_LOADERS)


def load(name: str) -> Dataset:
    """Load a public dataset.

    Each file is looked for in the folder given by the environment variable KHOT_DATA, then in the user's cache, and
    otherwise downloaded into the cache. Its checksum and structure are verified in all three cases.

    Parameters
    ----------
    name : str
        One of `NAMES`:

        ===================  =============  ==============  =======  =========================
        name                 training rows  test rows       classes  one input
        ===================  =============  ==============  =======  =========================
        `mnist`              60,000         10,000          10       uint8 (28, 28)
        `fashion-mnist`      60,000         10,000          10       uint8 (28, 28)
        `cifar10`            50,000         10,000          10       uint8 (32, 32, 3)
        `imdb`               25,000         25,000          2        str
        `20newsgroups-w100`  16,242         0: use `split`  4        uint8 (100,), 0 or 1
        `digits`             1,437          360             10       uint8 (8, 8), from 0 to 16
        ===================  =============  ==============  =======  =========================

    Returns
    -------
    Dataset
        The arrays are new and may be changed.

    Raises
    ------
    InvalidValueError
        For an unknown name.
    DownloadError
        If a file is missing and cannot be downloaded.
    DataFileError
        If a file is damaged, or KHOT_DATA is not a folder.

    Examples
    --------
    >>> import khot
    >>> digits = khot.datasets.load("digits")  # part of scikit-learn: needs no file and no network
    >>> digits.train
    Rows(inputs=uint8[1437, 8, 8], labels=int64[1437])
    >>> len(digits.test), digits.classes[digits.test.labels[0]]
    (360, '1')

    Notes
    -----
    The folder KHOT_DATA has the layout of the cache; a copy of the cache serves a machine without a network. It holds
    ``MNIST/raw/*.gz``, ``FashionMNIST/raw/*.gz``, ``cifar-10-batches-bin/*.bin``, ``IMDB/{train,test}.csv.xz``,
    ``20news_w100.mat``. In place of the files of CIFAR-10 and IMDB it may hold the published archives
    ``cifar-10-binary.tar.gz`` and ``aclImdb_v1.tar.gz``, which are then unpacked into the cache.
    """
    if name not in NAMES:
        raise InvalidValueError(f"name must be a dataset that khot knows, but got {name!r}: use {', '.join(NAMES)}")
    return _LOADERS[name]()
