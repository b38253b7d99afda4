"""Registry of the datasets: what each is, where it comes from, and how to check that it is the right one.

A new dataset is one :class:`DatasetEntry` in ``_ENTRIES``. Where the publisher gives checksums of the files (the image
sets), they are checked. The other publishers give none; there the arrays are checked: shape, rows of each class (or the
sum of the target), and the sum of the absolute values, which for MADELON and GINA are the official check-sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamiz._utils.names import pick
from tamiz.errors import UnknownDatasetError, UnknownNameError
from tamiz.paper.parsers import Parser, parse_arff, parse_challenge, parse_cifar, parse_idx, parse_mat, parse_rdata


@dataclass(frozen=True)
class RemoteFile:
    """A public file.

    Parameters
    ----------
    name : str
        Name under which the parser finds it.
    urls : tuple of str
        Addresses, in order of preference.
    checksum : str or None, default=None
        ``"md5:<hex>"`` or ``"sha256:<hex>"``, if published.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str | None = None


@dataclass(frozen=True)
class Source:
    """Files that together make a dataset.

    Parameters
    ----------
    title : str
        Name of the publisher.
    files : tuple of RemoteFile
        Files to download.
    parser : callable
        Called with the paths by file name and the entry; returns :class:`~tamiz.paper.parsers.DatasetArrays`.
    size : int or None, default=None
        Bytes of all files, about; None if not known.
    """

    title: str
    files: tuple[RemoteFile, ...]
    parser: Parser
    size: int | None = None


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset of the registry.

    Parameters
    ----------
    name : str
        Name to load it by; the file in the data home is ``<name>.npz``.
    title : str
        Name in the paper.
    shape : tuple of int
        (rows, features), all parts together.
    class_counts : tuple of int or None
        Rows of class 0, 1, ...; None if the target is a number (regression).
    reference : str
        Publication.
    n_train : int or None, default=None
        Number of rows, counted from the first, for training, the others being for testing; None without a predefined
        split.
    sources : tuple of Source, default=()
        Public sources, tried in this order; empty if the dataset exists only as a file.
    label : str, default=""
        Empty for the genuine set, otherwise what it is instead; printed with every result.
    stands_in_for : str, default=""
        Genuine set in whose place it can be loaded by its own name.
    note : str, default=""
        Difference from the set of the paper.
    totals : tuple of float or None, default=()
        Sum of the absolute values of the training rows and of the other rows, or of all rows without a split.
    target_total : float or None, default=None
        Sum of the absolute values of the target, for regression.
    sparse : bool, default=False
        Whether the data is a CSR matrix.
    image_shape : tuple of int or None, default=None
        (height, width, colours).
    target_names : tuple of str or None, default=None
        Names of the classes.
    """

    name: str
    title: str
    shape: tuple[int, int]
    class_counts: tuple[int, ...] | None
    reference: str
    n_train: int | None = None
    sources: tuple[Source, ...] = ()
    label: str = ""
    stands_in_for: str = ""
    note: str = ""
    totals: tuple[float | None, ...] = ()
    target_total: float | None = None
    sparse: bool = False
    image_shape: tuple[int, int, int] | None = None
    target_names: tuple[str, ...] | None = None

    @property
    def task(self) -> str:
        """Kind of target: "classification" or "regression"."""
        return "regression" if self.class_counts is None else "classification"

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return None if self.class_counts is None else len(self.class_counts)

    @property
    def display_name(self) -> str:
        """Title with its label."""
        return f"{self.title} ({self.label})" if self.label else self.title


def _one_file(title: str, url: str, parser: Parser) -> tuple[Source, ...]:
    return (Source(title, (RemoteFile(url.rsplit("/", 1)[-1], (url,)),), parser),)


def _authors(path: str) -> tuple[Source, ...]:
    base = "https://raw.githubusercontent.com/braisCB/E2E-FS/master/datasets"
    return _one_file("GitHub, braisCB/E2E-FS", f"{base}/{path}", parse_mat)


def _microarray(path: str) -> tuple[Source, ...]:
    base = "https://raw.githubusercontent.com/ramhiser/datamicroarray/master/data"
    return _one_file("GitHub, ramhiser/datamicroarray", f"{base}/{path}", parse_rdata)


def _uci(number: int, name: str) -> tuple[Source, ...]:
    """Return the current archive, then the single files of the older layout of the site."""
    old = f"https://archive.ics.uci.edu/ml/machine-learning-databases/{name}"
    single = tuple(
        RemoteFile(f"{name}_{part}.{kind}", (f"{old}/{folder}{name}_{part}.{kind}",))
        for part, kind, folder in (
            ("train", "data", f"{name.upper()}/"),
            ("train", "labels", f"{name.upper()}/"),
            ("valid", "data", f"{name.upper()}/"),
            ("valid", "labels", ""),
        )
    )
    archive = _one_file("UCI", f"https://archive.ics.uci.edu/static/public/{number}/{name}.zip", parse_challenge)
    return (*archive, Source("UCI, older layout", single, parse_challenge))


def _idx(title: str, bases: tuple[str, ...], md5: tuple[str, str, str, str], size: int) -> tuple[Source, ...]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    files = tuple(
        RemoteFile(f"{name}-ubyte.gz", tuple(f"{base}/{name}-ubyte.gz" for base in bases), f"md5:{digest}")
        for name, digest in zip(names, md5, strict=True)
    )
    return (Source(title, files, parse_idx, size),)


def _cifar(name: str, md5: str, size: int) -> tuple[Source, ...]:
    file = RemoteFile(name, (f"https://www.cs.toronto.edu/~kriz/{name}",), f"md5:{md5}")
    return (Source("University of Toronto", (file,), parse_cifar, size),)


_GUYON_2003 = "Guyon et al. 2004, NIPS 2003 challenge"
_DIGITS = tuple(str(digit) for digit in range(10))
_CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_ENTRIES = (
    DatasetEntry(
        "lymphoma", "LYMPHOMA", (45, 4026), (22, 23), "Alizadeh et al. 2000, Nature 403",
        sources=_authors("lymphoma/lymphoma.mat"), totals=(89807.42385232891,),
        note="every feature is already scaled to [0, 1] over all 45 samples in the paper's own file",
    ),
    DatasetEntry(
        "colon", "COLON", (62, 2000), (22, 40), "Alon et al. 1999, PNAS 96", target_names=("normal", "tumour"),
        sources=_authors("colon/colon.mat"), totals=(50069500.298187256,),
    ),
    DatasetEntry(
        "leukemia", "LEUKEMIA", (72, 7129), (25, 47), "Golub et al. 1999, Science 286", target_names=("AML", "ALL"),
        sources=_microarray("golub.RData"), totals=(386701079.0,),
    ),
    DatasetEntry(
        "leukemia_3571", "LEUKEMIA-3571", (72, 3571), (25, 47), "Golub et al. 1999, filtered after Dudoit",
        sources=_authors("leukemia/leukemia.mat"), totals=(207338.8987152822,), target_names=("AML", "ALL"),
        note="the paper's table says 7129 features; the file its authors publish has 3571, filtered and standardised",
    ),
    DatasetEntry(
        "lung", "LUNG", (181, 12533), (31, 150), "Gordon et al. 2002, Cancer Research 62",
        sources=_microarray("gordon.RData"), totals=(387788170.5923424,),
        target_names=("mesothelioma", "adenocarcinoma"),
    ),
    DatasetEntry(
        "dexter", "DEXTER", (600, 20000), (300, 300), _GUYON_2003, n_train=300, sparse=True,
        sources=_uci(168, "dexter"), totals=(2816528.0, 2820952.0),
    ),
    DatasetEntry(
        "madelon", "MADELON", (2600, 500), (1300, 1300), _GUYON_2003, n_train=2000,
        sources=_uci(171, "madelon"), totals=(488083511.0, 146395833.0),
    ),
    DatasetEntry(
        "gina", "GINA", (3468, 970), (1763, 1705), "Guyon et al. 2007, Agnostic Learning vs Prior Knowledge",
        n_train=3153,
        sources=_one_file("OpenML 1038", "https://www.openml.org/data/download/53921/gina_agnostic.arff", parse_arff),
        totals=(None, 16688946.0),
    ),
    DatasetEntry(
        "gisette", "GISETTE", (7000, 5000), (3500, 3500), _GUYON_2003, n_train=6000,
        sources=_uci(170, "gisette"),
    ),
    DatasetEntry(
        "mnist", "MNIST", (70000, 784), (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        "LeCun, Cortes, Burges 1998", n_train=60000, image_shape=(28, 28, 1), target_names=_DIGITS,
        totals=(1567298545.0, 264923200.0),
        sources=_idx(
            "original idx files, mirrored",
            ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"),
            (
                "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
                "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
            ),
            11_600_000,
        ),
    ),
    DatasetEntry(
        "fashion_mnist", "Fashion-MNIST", (70000, 784), (7000,) * 10, "Xiao, Rasul, Vollgraf 2017", n_train=60000,
        image_shape=(28, 28, 1), target_names=_CLOTHES, totals=(3431114169.0, 573469082.0),
        sources=_idx(
            "original idx files",
            (
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            ),
            (
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
                "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
            ),
            30_900_000,
        ),
    ),
    DatasetEntry(
        "cifar10", "CIFAR-10", (60000, 3072), (6000,) * 10, "Krizhevsky 2009", n_train=50000, image_shape=(32, 32, 3),
        sources=_cifar("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170_000_000), target_names=_THINGS,
    ),
    DatasetEntry(
        "cifar100", "CIFAR-100", (60000, 3072), (600,) * 100, "Krizhevsky 2009", n_train=50000, image_shape=(32, 32, 3),
        sources=_cifar("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", 169_000_000),
    ),
    DatasetEntry(
        "gina_rebuilt", "GINA", (3468, 970), (1763, 1705), "Guyon et al. 2007; training rows rebuilt from MNIST",
        n_train=3153, label="REBUILT", stands_in_for="gina", totals=(164726499.0, 16688946.0),
        note="the 315 validation rows are genuine; the training rows are other MNIST pairs in the same feature map",
    ),
    DatasetEntry(
        "gisette_rebuilt", "GISETTE", (7000, 5000), (3500, 3500), "Guyon et al. 2004; rebuilt from MNIST",
        n_train=6000, label="REBUILT", stands_in_for="gisette", totals=(3199965380.0, 532725128.0),
        note="other MNIST rows; 1838 of the 2500 real columns are exact, the rest and the probes are redrawn alike",
    ),
    DatasetEntry(
        "gisette_genuine_168rows", "GISETTE", (168, 5000), (82, 86), _GUYON_2003, label="SUBSET of 168 rows",
        stands_in_for="gisette", totals=(90024120.0,), note="168 genuine rows of 7000",
    ),
    DatasetEntry(
        "cifar10_subset_lossless", "CIFAR-10", (3660, 3072), (366,) * 10, "Krizhevsky 2009", n_train=3000,
        label="SUBSET", stands_in_for="cifar10", image_shape=(32, 32, 3), target_names=_THINGS,
        totals=(1109439627.0, 246027464.0),
        note="3000 + 660 images, exact pixels; both parts come from the official training set",
    ),
    DatasetEntry(
        "cifar10_subset_jpeg", "CIFAR-10", (12000, 3072), (1200,) * 10, "Krizhevsky 2009", n_train=10000,
        label="SUBSET, JPEG", stands_in_for="cifar10", image_shape=(32, 32, 3), target_names=_THINGS,
        totals=(3700783277.0, 746771276.0), note="10000 + 2000 images, decoded from JPEG files of quality 75",
    ),
)  # fmt: skip

#: All datasets by name.
REGISTRY: dict[str, DatasetEntry] = {entry.name: entry for entry in _ENTRIES}


def find_entry(name: str) -> DatasetEntry:
    """Return the entry of that name; case, spaces and hyphens do not matter.

    Parameters
    ----------
    name : str
        Name of a dataset.

    Returns
    -------
    DatasetEntry

    Raises
    ------
    UnknownDatasetError
        If there is none; the message suggests the nearest name.

    Examples
    --------
    >>> find_entry("Fashion-MNIST").shape
    (70000, 784)
    >>> find_entry("leukaemia")
    Traceback (most recent call last):
    tamiz.errors.UnknownDatasetError: Unknown dataset 'leukaemia'. Did you mean 'leukemia'? ...
    """
    try:
        return pick(name, REGISTRY, "dataset")
    except UnknownNameError as fault:
        raise UnknownDatasetError(str(fault)) from None


def stand_ins(name: str) -> list[DatasetEntry]:
    """Return the datasets that can be loaded, by their own names, in place of another one.

    Examples
    --------
    >>> [entry.name for entry in stand_ins("gisette")]
    ['gisette_rebuilt', 'gisette_genuine_168rows']
    """
    return [entry for entry in REGISTRY.values() if entry.stands_in_for == name]
