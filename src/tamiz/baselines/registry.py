"""List every method in one place: E2E-FS in its variants and the baselines.

A new baseline is one file and one line in ``BASELINES``; a new variant of E2E-FS appears by itself. Names and titles are read
without loading numba, scikit-learn or torch; all else a method says of itself as class attributes.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from tamiz._utils.extras import require
from tamiz._utils.text import pick_name, plain
from tamiz.core.rule import VARIANTS

#: Class attributes of a method, see :class:`~tamiz.baselines.BaselineSelector`, with their values for E2E-FS.
FACTS = {
    "tasks": ("classification", "regression"),
    "uses_target": True,
    "nested": "each",
    "keeps_all": False,
    "accepts_sparse": ("csr",),
    "allows_nan": False,
    "engine": "compiled",
}


@dataclass(frozen=True)
class Method:
    """Describe a method of feature selection; the names in :data:`FACTS` are attributes too.

    Parameters
    ----------
    name : str
        Name in the registry, as users type it.
    title : str
        Name in tables and reports.
    path : str, default=that of E2EFSClassifier
        Its class as "module:class", loaded when it is needed.
    options : dict, default={}
        Parameters of the class that make the method: variant, or variant and network, of E2E-FS.
    """

    name: str
    title: str
    path: str = "tamiz.estimators.e2efs:E2EFSClassifier"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def trains_model(self) -> bool:
        """Whether the selector predicts too, with the model that was trained along."""
        return bool(self.options)

    def load(self, task: str = "auto") -> type:
        """Import the class; for E2E-FS and the task "regression" it is the regressor."""
        regressor = self.trains_model and task == "regression"
        found = resolve_name(self.path.replace("Classifier", "Regressor") if regressor else self.path)
        if getattr(found, "engine", "") == "torch":
            require("torch", "torch", f"The method {self.name}")
        return found

    def __getattr__(self, name: str) -> Any:
        if name in FACTS:
            return FACTS[name] if self.trains_model else getattr(self.load(), name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


#: The baselines.
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


def by_class() -> dict[str, str]:
    """Names of the baselines by those of their classes, also of baselines that were registered later."""
    return {method.path.partition(":")[2]: name for name, method in BASELINES.items()}


def methods() -> dict[str, Method]:
    """List every method by name, E2E-FS first: the variants of the rule, E2E-FS with pairs, and the baselines.

    Examples
    --------
    >>> methods()["svm-rfe"].title
    'SVM-RFE'
    """
    names = {"e2efs" if variant == "hard" else f"e2efs-{variant}": variant for variant in VARIANTS}
    found = {name: Method(name, VARIANTS[of].title, options={"variant": of}) for name, of in names.items()}
    found["pairs"] = Method("pairs", "E2E-FS-Pairs", options={"variant": "soft", "network": "pairs"})
    return found | BASELINES


def available() -> list[str]:
    """Names of all methods, E2E-FS first.

    Examples
    --------
    >>> available()[:5]
    ['e2efs', 'e2efs-soft', 'e2efs-ranking', 'pairs', 'fisher']
    """
    return list(methods())


def canonical_name(name: str) -> str:
    """Spell the name of a method as the registry does.

    Case and punctuation do not count; the class of a baseline and "e2efs-hard" are understood too.

    Examples
    --------
    >>> canonical_name("SVM_RFE"), canonical_name("FisherScore"), canonical_name("E2E-FS Soft"), canonical_name("e2efs-hard")
    ('svm-rfe', 'fisher', 'e2efs-soft', 'e2efs')
    >>> canonical_name("relif")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown method 'relif'. Did you mean 'relieff'? There are: e2efs, e2efs-soft, ...
    """
    others = {plain(kind): known for kind, known in by_class().items()} | {"e2efshard": "e2efs"}
    return others.get(plain(str(name))) or pick_name(name, methods(), "method")


def get_method(name: str) -> Method:
    """Look up the description of a method.

    Examples
    --------
    >>> get_method("svm-rfe").title, get_method("svm-rfe").nested
    ('SVM-RFE', 'smallest')
    >>> get_method("e2efs-soft").title
    'E2E-FS-Soft'
    """
    return methods()[canonical_name(name)]


def make_selector(
    name: str,
    n_features_to_select: int | float | None = None,
    *,
    task: str = "auto",
    random_state: Any = None,
    network: str | None = None,
    **options: Any,
) -> Any:
    """Make a selector by the name of its method.

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
    network : str or None, default=None
        Network of the methods that train one and do not say which; None is that of their class.
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
    known = {"task": task, "random_state": random_state} | ({} if network is None else {"network": network})
    shared = {key: value for key, value in known.items() if key in taken and key not in method.options}
    return kind(n_features_to_select=n_features_to_select, **method.options, **shared, **options)
