"""List every method in one place: E2E-FS in its variants and the baselines.

A new baseline is one file and one line in ``BASELINES``; a new variant of E2E-FS appears by itself, and E2E-FS with a network
that makes it a method of its own is one line in ``NETWORK_METHODS``. Names and titles are
read without loading numba, scikit-learn or torch; all else a method says of itself as class attributes.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tamiz._utils.extras import require
from tamiz._utils.names import pick_name, plain
from tamiz.core.rule import VARIANTS

#: Class attributes of a method, see :class:`~tamiz.baselines.BaselineSelector`: ``tasks`` it is made for, whether it
#: ``uses_target``, at which M one fit serves every M (``nested``: "any", "largest", "smallest", or "each"), whether it
#: ``keeps_all``, the formats of sparse tables it ``accepts_sparse``, whether it ``allows_nan``, and which ``engine`` computes.
FACTS = ("tasks", "uses_target", "nested", "keeps_all", "accepts_sparse", "allows_nan", "engine")


@dataclass(frozen=True)
class Method:
    """Describe a method of feature selection; the names in :data:`FACTS` are attributes too, read from its class.

    Parameters
    ----------
    name : str
        Name in the registry, as users type it.
    title : str
        Name in tables and reports.
    path : str
        Its class as "module:class", loaded when it is needed.
    """

    name: str
    title: str
    path: str

    def load(self, task: str = "auto") -> type:
        """Import and return the class that selects for a task."""
        try:
            return _load(self.path)
        except ImportError:
            require("torch", "torch", f"The method {self.name}")  # raises, with the command, if torch is not installed
            raise

    def __getattr__(self, name: str) -> Any:
        """Return what its class says of itself: a name in :data:`FACTS`."""
        if name in FACTS:
            return getattr(self.load(), name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def trains_model(self) -> bool:
        """Return whether the selector predicts too, with the model that was trained along."""
        return False

    @property
    def options(self) -> dict[str, Any]:
        """Return the parameters of its class that make the method."""
        return {}


@dataclass(frozen=True)
class VariantMethod(Method):
    """Describe E2E-FS in one of its variants.

    Parameters
    ----------
    variant : str, default="hard"
        Value of the parameter ``variant`` of the estimators.
    network : str or None, default=None
        Value of the parameter ``network`` of the estimators that makes the method; None: whichever the user chooses.
    """

    variant: str = "hard"
    network: str | None = None

    tasks = ("classification", "regression")
    uses_target = True
    nested = "each"
    keeps_all = False
    accepts_sparse = ("csr",)
    allows_nan = False
    engine = "compiled"
    trains_model = True

    def load(self, task: str = "auto") -> type:
        """Import and return the classifier or, for the task "regression", the regressor."""
        return _load(self.path.replace("Classifier", "Regressor") if task == "regression" else self.path)

    @property
    def options(self) -> dict[str, Any]:
        """Return the parameters of its class that make the method."""
        return {"variant": self.variant} | ({} if self.network is None else {"network": self.network})


class _VariantMethods(MutableMapping[str, Method]):
    """Show ``VARIANTS`` as methods, whatever it holds at the time: "hard" is "e2efs", "soft" is "e2efs-soft"."""

    def _names(self) -> dict[str, str]:
        return {"e2efs" if name == "hard" else f"e2efs-{name}": name for name in VARIANTS}

    def __getitem__(self, name: str) -> Method:
        variant = self._names()[name]
        return VariantMethod(name, VARIANTS[variant].title, "tamiz.estimators.e2efs:E2EFSClassifier", variant)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(VARIANTS)

    def __setitem__(self, name: str, method: Method) -> None:
        raise TypeError("Variants of E2E-FS are registered in tamiz.core.VARIANTS.")

    def __delitem__(self, name: str) -> None:
        raise TypeError("Variants of E2E-FS are registered in tamiz.core.VARIANTS.")


#: The baselines. A test checks that names and titles are those of the classes.
BASELINES: dict[str, Method] = {
    method.name: method
    for method in (
        Method("fisher", "Fisher", "tamiz.baselines.fisher:FisherScore"),
        Method("mim", "MIM", "tamiz.baselines.information:MIM"),
        Method("relieff", "ReliefF", "tamiz.baselines.relieff:ReliefF"),
        Method("inffs", "InfFS", "tamiz.baselines.infinite:InfFS"),
        Method("ilfs", "ILFS", "tamiz.baselines.infinite:ILFS"),
        Method("svm-rfe", "SVM-RFE", "tamiz.baselines.wrappers:SVMRFE"),
        Method("lasso", "Lasso", "tamiz.baselines.lasso:Lasso"),
        Method("dfs", "DFS", "tamiz.paper.deep:DFS"),
        Method("sfs", "SFS", "tamiz.paper.deep:SFS"),
        Method("isfs", "iSFS", "tamiz.paper.deep:ISFS"),
        Method("sfs+dfs", "SFS+DFS", "tamiz.paper.deep:SFSDFS"),
        Method("random-forest", "random forest", "tamiz.baselines.wrappers:RandomForestImportance"),
        Method("mrmr", "mRMR", "tamiz.baselines.information:MRMR"),
        Method("pair-search", "pair search", "tamiz.baselines.wrappers:PairSearchScore"),
        Method("random", "random features", "tamiz.baselines.wrappers:RandomSelection"),
        Method("all", "all features", "tamiz.baselines.wrappers:AllFeatures"),
    )
}

#: E2E-FS with a network of its own, whichever network the other methods of a table train.
NETWORK_METHODS: dict[str, Method] = {
    "pairs": VariantMethod("pairs", "E2E-FS-Pairs", "tamiz.estimators.e2efs:E2EFSClassifier", "soft", "pairs"),
}

#: Every method, E2E-FS first. ``METHODS[name] = Method(...)`` registers a baseline.
METHODS: ChainMap[str, Method] = ChainMap(BASELINES, NETWORK_METHODS, _VariantMethods())


def _load(path: str) -> type:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def available() -> list[str]:
    """Return the names of all methods, E2E-FS first.

    Examples
    --------
    >>> available()[:5]
    ['e2efs', 'e2efs-soft', 'e2efs-ranking', 'pairs', 'fisher']
    """
    return list(METHODS)


def canonical_name(name: str) -> str:
    """Return the name of a method as the registry spells it.

    Case and punctuation do not count; the class of a baseline and "e2efs-hard" are understood too.

    Examples
    --------
    >>> canonical_name("SVM_RFE"), canonical_name("FisherScore"), canonical_name("E2E-FS Soft"), canonical_name("e2efs-hard")
    ('svm-rfe', 'fisher', 'e2efs-soft', 'e2efs')
    >>> canonical_name("relif")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown method 'relif'. Did you mean 'relieff'? There are: e2efs, e2efs-soft, ...
    """
    others = {plain(method.path.partition(":")[2]): known for known, method in BASELINES.items()}
    others["e2efshard"] = "e2efs"
    return others.get(plain(str(name))) or pick_name(name, METHODS, "method")


def get_method(name: str) -> Method:
    """Return the description of a method.

    Examples
    --------
    >>> get_method("svm-rfe").title, get_method("svm-rfe").nested
    ('SVM-RFE', 'smallest')
    >>> get_method("e2efs-soft").title
    'E2E-FS-Soft'
    """
    return METHODS[canonical_name(name)]


def make_selector(
    name: str,
    n_features_to_select: int | float | None = None,
    *,
    task: str = "auto",
    random_state: Any = None,
    **options: Any,
) -> Any:
    """Return a selector by the name of its method.

    Parameters
    ----------
    name : str
        Name of the method, see :func:`available`.
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is. "auto" leaves it to the method; E2E-FS then classifies.
    random_state : int, RandomState instance or None, default=None
        Seed; methods without chance do not use it.
    **options
        Further parameters of the class.

    Returns
    -------
    selector
        With ``fit``, ``get_support``, ``transform``, ``ranking_`` and ``selection_``.

    Examples
    --------
    >>> make_selector("fisher", 3, random_state=0)
    FisherScore(n_features_to_select=3)
    >>> make_selector("random", 3, random_state=0)
    RandomSelection(n_features_to_select=3, random_state=0)
    >>> make_selector("fisher", 3, task="regression")
    Traceback (most recent call last):
    ValueError: The method 'fisher' does not do regression. Use another method, or bin the target.
    """
    method = get_method(name)
    if task != "auto" and task not in method.tasks:
        raise ValueError(f"The method {method.name!r} does not do {task}. Use another method, or bin the target.")
    kind = method.load(task)
    taken = inspect.signature(kind).parameters
    shared = {key: value for key, value in (("task", task), ("random_state", random_state)) if key in taken}
    return kind(n_features_to_select=n_features_to_select, **method.options, **shared, **options)
