"""How the commands fit the methods of the registry: defaults, at which M, with which seed and network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tamiz.baselines import registry

#: Methods of a comparison for which the user names none.
DEFAULT_METHODS = {
    "classification": ("e2efs-soft", "fisher", "relieff", "lasso", "random", "all"),
    "regression": ("e2efs-soft", "relieff", "lasso", "random", "all"),
}

#: Lines to compare with: neither ranked nor tested.
REFERENCE_METHODS = ("random", "all")


def fit_size(nested: str, m: int, m_values: Sequence[int]) -> int:
    """Return the number of features that a method is fitted for to select ``m`` of the ``m_values``.

    Parameters
    ----------
    nested : {"any", "largest", "smallest", "each"}
        What the method says of itself, see :class:`~tamiz.baselines.Method`.
    m : int
        Number of features wanted.
    m_values : sequence of int
        All numbers of features wanted.

    Examples
    --------
    >>> [fit_size(nested, 10, [5, 10, 20]) for nested in ("any", "largest", "smallest", "each")]
    [20, 20, 5, 10]
    """
    return {"any": max(m_values), "largest": max(m_values), "smallest": min(m_values), "each": m}[nested]


def pick_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of several methods as the registry spells them, none twice.

    Examples
    --------
    >>> pick_methods(["e2efs", " Fisher", "svm_rfe", "fisher"])
    ('e2efs', 'fisher', 'svm-rfe')
    """
    return tuple(dict.fromkeys(registry.canonical_name(name) for name in names))


def rank_for_targets(make: Callable[[], Any], X: Any, y: np.ndarray) -> np.ndarray:
    """Return one ranking of the features for several targets, from a selector that takes one at a time.

    The selector is fitted to each target by itself. Features are ordered by their best rank over the targets, so that the
    first one of every target comes before the second one of any; of equal best ranks, by the mean rank.

    Parameters
    ----------
    make : callable
        Returns a selector with ``fit`` and ``ranking_``, not fitted.
    X : array or sparse matrix
        Table.
    y : ndarray of shape (n_samples, n_targets)
        Targets.

    Examples
    --------
    >>> from tamiz.baselines import ReliefF
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> rank_for_targets(lambda: ReliefF(n_features_to_select=1), X, X[:, [3, 1]])[[3, 1]].tolist() in ([1, 2], [2, 1])
    True
    """
    rankings = np.array([make().fit(X, target).ranking_ for target in y.T])
    ranking = np.empty(rankings.shape[1], dtype=np.int64)
    ranking[np.lexsort((rankings.mean(axis=0), rankings.min(axis=0)))] = np.arange(1, ranking.size + 1)
    return ranking


def make_seeded(
    name: str,
    n_features_to_select: int,
    seed: int,
    *,
    task: str = "auto",
    network: str = "linear",
    **parameters: Any,
) -> Any:
    """Make a selector that is not fitted yet.

    Parameters
    ----------
    name : str
        Name of the method.
    n_features_to_select : int
        M.
    seed : int
        Its ``random_state``, if it has one.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto": E2E-FS classifies, the baselines find the task from the target.
    network : str, default="linear"
        Network of the methods that train one and do not say which.
    **parameters
        Further parameters of its class.

    Examples
    --------
    >>> make_seeded("fisher", 3, seed=0)
    FisherScore(n_features_to_select=3)
    """
    method = registry.get_method(name)
    if "network" in inspect.signature(method.load(task)).parameters and "network" not in method.options:
        parameters["network"] = network
    return registry.make_selector(name, n_features_to_select, task=task, random_state=seed, **parameters)
