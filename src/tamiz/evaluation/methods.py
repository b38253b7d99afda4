"""Selection methods by name: E2E-FS in its variants and the baselines, each described once for every command."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tamiz._names import pick_name, plain
from tamiz.baselines import registry

_TASKS = ("classification", "regression")


@dataclass(frozen=True)
class MethodInfo:
    """Describe a selection method.

    Parameters
    ----------
    name : str
        Name that users type.
    title : str
        Name in tables.
    variant : {"hard", "soft", "ranking"} or None, default=None
        Variant of E2E-FS; None for a baseline.
    tasks : tuple of str, default=("classification", "regression")
        Tasks it can be fitted for.
    nested : {"any", "largest", "smallest", "each"}, default="any"
        M at which one fit serves every M. "any": the ranking does not depend on M; "largest": a search that stops at M holds
        the selections for all smaller ones; "smallest": an elimination that stops at M holds those for all larger ones;
        "each": one fit for each M.
    keeps_all : bool, default=False
        Whether it keeps every feature, whatever M is.
    engine : {"compiled", "torch"}, default="compiled"
        Engine that trains it with the linear network. Torch has one random generator and uses all cores by itself, so its
        methods do not run in threads.
    """

    name: str
    title: str
    variant: str | None = None
    tasks: tuple[str, ...] = _TASKS
    nested: str = "any"
    keeps_all: bool = False
    engine: str = "compiled"

    @property
    def trains_model(self) -> bool:
        """Whether the method trains a model along with its selection."""
        return self.variant is not None


#: Everything that is known of the methods beside their classes. A baseline that is registered and not listed here has the
#: defaults above and its name as title.
_DESCRIBED = (
    MethodInfo("e2efs", "E2E-FS", variant="hard", nested="each"),
    MethodInfo("e2efs-soft", "E2E-FS-Soft", variant="soft", nested="each"),
    MethodInfo("e2efs-ranking", "E2E-FS-Ranking", variant="ranking", nested="each"),
    MethodInfo("fisher", "Fisher", tasks=("classification",)),
    MethodInfo("mim", "MIM"),
    MethodInfo("relieff", "ReliefF"),
    MethodInfo("inffs", "InfFS"),
    MethodInfo("ilfs", "ILFS", tasks=("classification",)),
    MethodInfo("svm-rfe", "SVM-RFE", nested="smallest"),
    MethodInfo("lasso", "Lasso", nested="each"),
    MethodInfo("dfs", "DFS", engine="torch"),
    MethodInfo("sfs", "SFS", engine="torch"),
    MethodInfo("isfs", "iSFS", nested="each", engine="torch"),
    MethodInfo("sfs+dfs", "SFS+DFS", engine="torch"),
    MethodInfo("random-forest", "random forest"),
    MethodInfo("mrmr", "mRMR", nested="largest"),
    MethodInfo("random", "random features"),
    MethodInfo("all", "all features", keeps_all=True),
)
_BY_NAME = {method.name: method for method in _DESCRIBED}
#: Methods that train a model along with their selection.
OWN_METHODS = tuple(method.name for method in _DESCRIBED if method.trains_model)
#: Methods of a comparison for which the user names none.
DEFAULT_METHODS = {
    "classification": ("e2efs-soft", "fisher", "relieff", "lasso", "random", "all"),
    "regression": ("e2efs-soft", "relieff", "lasso", "random", "all"),
}


def method_names() -> list[str]:
    """Return the names of all methods, E2E-FS first.

    Examples
    --------
    >>> method_names()[:4]
    ['e2efs', 'e2efs-soft', 'e2efs-ranking', 'fisher']
    """
    return [*OWN_METHODS, *registry.available()]


def method_info(name: str) -> MethodInfo:
    """Return the description of a method by its name, as :func:`pick_method` spells it.

    Examples
    --------
    >>> method_info("svm-rfe").title, method_info("svm-rfe").nested
    ('SVM-RFE', 'smallest')
    """
    return _BY_NAME.get(name) or MethodInfo(name, name)


def fit_size(nested: str, m: int, m_values: Sequence[int]) -> int:
    """Return the number of features that a method is fitted for to select ``m`` of the ``m_values``.

    Examples
    --------
    >>> [fit_size(nested, 10, [5, 10, 20]) for nested in ("any", "largest", "smallest", "each")]
    [20, 20, 5, 10]
    """
    return {"any": max(m_values), "largest": max(m_values), "smallest": min(m_values), "each": m}[nested]


def pick_method(name: str) -> str:
    """Return the name of a method, whichever case and punctuation it is typed in; "hard" may be added to "e2efs".

    Raises
    ------
    UnknownNameError
        If there is no such method; the message suggests the nearest and lists all.

    Examples
    --------
    >>> pick_method("E2E-FS Soft"), pick_method("e2efs-hard"), pick_method("SVM_RFE"), pick_method("sfs-dfs")
    ('e2efs-soft', 'e2efs', 'svm-rfe', 'sfs+dfs')
    """
    spellings = {plain(f"e2efs-{method.variant}"): method.name for method in _DESCRIBED if method.trains_model}
    try:
        return spellings.get(plain(name)) or registry.canonical_name(name)
    except ValueError:
        return pick_name(name, method_names(), "method")


def pick_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of several methods, none twice.

    Examples
    --------
    >>> pick_methods(["e2efs", " Fisher", "svm_rfe", "fisher"])
    ('e2efs', 'fisher', 'svm-rfe')
    """
    return tuple(dict.fromkeys(pick_method(name) for name in names))


def make_selector(
    name: str,
    n_features_to_select: int,
    seed: int,
    *,
    task: str | None = None,
    network: str = "linear",
    **parameters: Any,
) -> Any:
    """Make a selector that is not fitted yet.

    Parameters
    ----------
    name : str
        As :func:`pick_method` spells it.
    n_features_to_select : int
        M.
    seed : int
        Its ``random_state``, if it has one.
    task : {"classification", "regression"} or None, default=None
        None: E2E-FS classifies, the baselines find the task from the target.
    network : {"linear", "mlp"}, default="linear"
        What methods that train a network train; "mlp" is the paper's network of three layers.
    **parameters
        Further parameters of its class.

    Examples
    --------
    >>> make_selector("fisher", 3, seed=0)
    FisherScore(n_features_to_select=3)
    """
    variant = method_info(name).variant
    if variant is not None:
        from tamiz.estimators import E2EFSClassifier, E2EFSRegressor

        kind: Any = E2EFSRegressor if task == "regression" else E2EFSClassifier
        return kind(n_features_to_select, variant=variant, network=network, random_state=seed, **parameters)
    accepted = inspect.signature(registry.load(name)).parameters
    offered = {"random_state": seed, "task": task, "network": "three_layer" if network == "mlp" else None}
    known = {key: value for key, value in offered.items() if key in accepted and value is not None}
    return registry.make(name, n_features_to_select=n_features_to_select, **{**known, **parameters})
