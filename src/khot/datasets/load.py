"""From a name to a dataset."""

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

    Each file is looked for in the folder that the environment variable KHOT_DATA names, then in the user's cache; else
    it is downloaded into the cache. Wherever it comes from, its checksum and its structure are verified.

    Parameters
    ----------
    name : str
        One of `NAMES`:

        ===================  =============  ==============  =======  =========================
        name                 rows to train  rows to test    classes  an input
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
        Fresh arrays, which the caller may change.

    Raises
    ------
    InvalidValueError
        For an unknown name.
    DownloadError
        If a file is not there and cannot be downloaded.
    DataFileError
        If a file is damaged, or what KHOT_DATA names is not a folder.

    Examples
    --------
    >>> import khot
    >>> digits = khot.datasets.load("digits")  # comes with scikit-learn; needs no file and no network
    >>> digits.train
    Rows(inputs=uint8[1437, 8, 8], labels=int64[1437])
    >>> len(digits.test), digits.classes[digits.test.labels[0]]
    (360, '1')

    Notes
    -----
    A folder for KHOT_DATA has the layout of the cache, so that a copy of the cache will do where there is no network:
    ``MNIST/raw/*.gz``, ``FashionMNIST/raw/*.gz``, ``cifar-10-batches-bin/*.bin``, ``IMDB/{train,test}.csv.xz``,
    ``20news_w100.mat``. Instead of the files of CIFAR-10 and IMDB it may hold the published archives,
    ``cifar-10-binary.tar.gz`` and ``aclImdb_v1.tar.gz``, which are then unpacked into the cache.
    """
    if name not in NAMES:
        raise InvalidValueError(f"name must be a dataset that khot knows, but got {name!r}: use {', '.join(NAMES)}")
    return _LOADERS[name]()
