"""The table of files: path in a data folder, checksum, number of rows, and addresses to download from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A file of a dataset, or an archive of such files.

    Attributes
    ----------
    path : str
        Path within a data folder.
    checksum : str or None
        ``algorithm:digits``; None if the file has none.
    rows : int
        Number of rows, 0 for an archive.
    urls : tuple of str
        Addresses in the order in which they are tried; none for a file that is published only in an archive.
    """

    path: str
    checksum: str | None
    rows: int = 0
    urls: tuple[str, ...] = ()


def _idx(folder: str, checksums: dict[str, str], mirrors: tuple[str, ...]) -> list[Source]:
    return [
        Source(f"{folder}/{name}", f"sha256:{digits}", 60_000 if "train" in name else 10_000, _at(mirrors, name))
        for name, digits in checksums.items()
    ]


def _at(mirrors: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(mirror + name for mirror in mirrors)


_MNIST = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_FASHION = {
    "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
_FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
_CIFAR10_SHA1 = {
    "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
}
_ALL = [
    *_idx("MNIST/raw", _MNIST, _MNIST_MIRRORS),
    *_idx("FashionMNIST/raw", _FASHION, _FASHION_MIRRORS),
    *[Source(f"cifar-10-batches-bin/{name}", f"sha1:{sha1}", 10_000) for name, sha1 in _CIFAR10_SHA1.items()],
    Source(
        "cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
        urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    ),
    # The bytes of these two depend on the version of xz that packed them; xz itself detects damage.
    Source("IMDB/train.csv.xz", None, 25_000),
    Source("IMDB/test.csv.xz", None, 25_000),
    Source(
        "aclImdb_v1.tar.gz",
        "md5:7c2ac02c03563afcf9b574c7e56c153a",
        urls=("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
    ),
    Source(
        "20news_w100.mat",
        "sha256:6667c5459e22eb544a854bff1443edaaea71735cf1af7b12cc5d986e74af7064",
        16_242,
        (
            "https://www.cs.toronto.edu/~roweis/data/20news_w100.mat",
            "https://cs.nyu.edu/~roweis/data/20news_w100.mat",
            "https://raw.githubusercontent.com/ermongroup/subsets/master/subsets/tsne/data/20news_w100.mat",
        ),
    ),
]
FILES = {source.path: source for source in _ALL}
