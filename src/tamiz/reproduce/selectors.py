"""The selectors of a protocol by name: ours and the baselines, each with all its settings as data."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.baselines import registry
from tamiz.reproduce.cells import seed_from
from tamiz.reproduce.sources import pick_name
from tamiz.estimators import E2EFSClassifier
from tamiz.estimators.defaults import NETWORK_STARTS, default_schedule

#: Our methods as the paper calls them, and their variants.
OWN = {"e2efs": "hard", "e2efs-soft": "soft", "e2efs-ranking": "ranking"}
#: Baselines whose ranking depends on how many features are asked for.
NOT_NESTED = ("isfs", "lasso")

TITLES = {
    "e2efs": "E2E-FS",
    "e2efs-soft": "E2E-FS-Soft",
    "e2efs-ranking": "E2E-FS-Ranking",
    "mim": "MIM",
    "fisher": "Fisher",
    "relieff": "ReliefF",
    "inffs": "InfFS",
    "ilfs": "ILFS",
    "svm-rfe": "SVM-RFE",
    "lasso": "Lasso",
    "dfs": "DFS",
    "sfs": "SFS",
    "isfs": "iSFS",
    "sfs+dfs": "SFS+DFS",
    "random-forest": "random forest",
    "mrmr": "mRMR",
    "random": "random features",
    "all": "all features",
}


def known_methods() -> list[str]:
    """All methods, ours first.

    Examples
    --------
    >>> known_methods()[:4]
    ['e2efs', 'e2efs-soft', 'e2efs-ranking', 'fisher']
    """
    return [*OWN, *registry.available()]


def pick_method(name: str) -> str:
    """The name of a method as the lists spell it.

    Examples
    --------
    >>> pick_method("E2E-FS Soft"), pick_method("e2efs-hard"), pick_method("SVM_RFE")
    ('e2efs-soft', 'e2efs', 'svm-rfe')
    """
    if name.strip().lower() == "e2efs-hard":
        return "e2efs"
    return pick_name(name, known_methods(), "method")


def is_own(method: str) -> bool:
    """Whether a method trains its own model along with the selection."""
    return method in OWN


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def method_settings(method: str, network: str = "linear", **parameters: Any) -> dict[str, Any]:
    """Every parameter of a method, with the defaults of today: a changed default is another setting.

    Examples
    --------
    >>> method_settings("relieff")
    {'n_neighbors': 10, 'task': 'auto'}
    """
    estimator = make_selector(method, 1, 0, network, **parameters)
    given = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    for name in ("n_features_to_select", "random_state", "n_jobs", "verbose"):
        given.pop(name, None)
    if is_own(method):
        given["schedule"] = asdict(default_schedule(1000, "classification", network == "linear"))
        given["starts"] = 1 if network == "linear" else NETWORK_STARTS
    return dict(sorted(given.items()))


def make_selector(method: str, n_features_to_select: int, seed: int, network: str = "linear", **parameters: Any) -> Any:
    """A selector that is not fitted yet; ``parameters`` are those that a protocol sets away from their defaults."""
    if is_own(method):
        return E2EFSClassifier(
            n_features_to_select, variant=OWN[method], network=network, random_state=seed, **parameters
        )
    takes = inspect.signature(registry.load(method)).parameters
    more = dict(parameters)
    if "random_state" in takes:
        more["random_state"] = seed
    if "network" in takes and network == "mlp":
        more["network"] = "three_layer"
    return registry.make(method, n_features_to_select=n_features_to_select, **more)


def unit_range(train: Any) -> Any:
    """Each column scaled to [0, 1], as the filters of the paper saw the training part; sparse ones by their maximum.

    Examples
    --------
    >>> unit_range(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

    return (MaxAbsScaler() if sp.issparse(train) else MinMaxScaler()).fit_transform(train)


@dataclass(frozen=True)
class Picked:
    """What a method kept for one M: the columns, the seconds it took, and for our methods the fitted model."""

    columns: np.ndarray
    seconds: float
    model: Any = None
    converged: bool = True


def select_for_all(
    method: str, train: Any, y: np.ndarray, m_values: Sequence[int], identity: Sequence[Any], network: str = "linear"
) -> list[Picked]:
    """Select for every M: one ranking where it serves all of them, else one fit for each.

    Parameters
    ----------
    method : str
        As :func:`pick_method` spells it.
    train, y : matrix, array
        The training rows (as they are: a filter sees them scaled to [0, 1]).
    m_values : sequence of int
        Numbers of features.
    identity : sequence
        What the seeds depend on: data set, split and so on.
    network : str
        "linear" or "mlp".
    """
    if not is_own(method):
        kind = registry.load(method)
        if sp.issparse(train) and not kind._accept_sparse:
            train = train.toarray()
        train = unit_range(train)
    if is_own(method) or method in NOT_NESTED:
        return [_select_one(method, train, y, m, seed_from(*identity, method, m), network) for m in m_values]
    largest = train.shape[1] if method == "all" else max(m_values)
    whole = _select_one(method, train, y, largest, seed_from(*identity, method), network)
    if method == "all":
        return [whole for _ in m_values]
    ranking = whole.model.ranking_
    return [Picked(np.flatnonzero(ranking <= m), whole.seconds, converged=whole.converged) for m in m_values]


def _select_one(method: str, train: Any, y: np.ndarray, m: int, seed: int, network: str) -> Picked:
    selector = make_selector(method, m, seed, network)
    started = time.perf_counter()
    selector.fit(train, y)
    seconds = time.perf_counter() - started
    return Picked(np.flatnonzero(selector.get_support()), seconds, selector, bool(selector.selection_.converged))
