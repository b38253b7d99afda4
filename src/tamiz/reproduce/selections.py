"""Selections of the protocols: methods with all their settings as data, fitted for several numbers of features."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.baselines.registry import get_method
from tamiz.engines.schedule import DENSE_STARTS, NETWORK_STARTS, PAPER_STARTS
from tamiz.estimators.networks import find_network, find_schedule
from tamiz.evaluation.methods import fit_size, make_seeded
from tamiz.reproduce.cells import seed_from

#: Parameters that a cell keeps elsewhere, or that do not decide its result.
_LEFT_OUT = ("n_features_to_select", "random_state", "n_jobs", "verbose")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def method_settings(method: str, network: str = "linear", **parameters: Any) -> dict[str, Any]:
    """Return every parameter of a method with its present default: a changed default is another setting.

    Examples
    --------
    >>> method_settings("relieff")
    {'n_neighbors': 10, 'task': 'auto'}
    """
    estimator = make_seeded(method, 1, 0, network=network, **parameters)
    found = {name: _plain(value) for name, value in estimator.get_params(deep=False).items() if name not in _LEFT_OUT}
    info = get_method(method)
    if info.trains_model:
        kind = find_network(info.options.get("network", network))
        automatic = DENSE_STARTS if kind.compiled else NETWORK_STARTS
        found["decided"] = asdict(find_schedule(estimator)(1000, 100, "classification"))
        found["starts"] = PAPER_STARTS if kind.convex or estimator.schedule == "paper" else automatic
    elif info.nested == "smallest":
        found["fitted"] = info.nested  # a cell without this entry was fitted at the largest M or at each
    return dict(sorted(found.items()))


def unit_range(train: Any) -> Any:
    """Scale each column to [0, 1], as the filters of the paper see the training part; sparse ones by their maximum.

    Examples
    --------
    >>> unit_range(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

    return (MaxAbsScaler() if sp.issparse(train) else MinMaxScaler()).fit_transform(train)


@dataclass(frozen=True)
class Picked:
    """Hold the selection of a method for one M: columns, seconds, and the fitted selector where it predicts."""

    columns: np.ndarray
    seconds: float
    model: Any = None
    converged: bool = True


def select_for_all(
    method: str,
    train: Any,
    y: np.ndarray,
    m_values: Sequence[int],
    identity: Sequence[Any],
    network: str = "linear",
    parameters: Mapping[str, Any] | None = None,
) -> list[Picked]:
    """Select for every M: by one ranking, or by one fit for each M, as the description of the method says.

    Parameters
    ----------
    method : str
        As :func:`~tamiz.baselines.registry.canonical_name` spells it.
    train, y : matrix, array
        Training rows; a baseline sees them scaled to [0, 1].
    m_values : sequence of int
        Numbers of features.
    identity : sequence
        What the seeds depend on: data set, split and so on.
    network : {"linear", "mlp"}, default="linear"
        Network that is trained.
    parameters : mapping or None, default=None
        Further parameters of the class of the method.
    """
    info = get_method(method)
    options = {"network": network, **(parameters or {})}
    if not info.trains_model:
        train = unit_range(_as_accepted(method, train))
    if info.nested == "each":
        return [_select_one(method, train, y, m, seed_from(*identity, method, m), options) for m in m_values]
    size = train.shape[1] if info.keeps_all else fit_size(info.nested, m_values[0], m_values)
    whole = _select_one(method, train, y, size, seed_from(*identity, method), options)
    if info.keeps_all:
        return [whole for _ in m_values]
    ranking = whole.model.ranking_
    return [Picked(np.flatnonzero(ranking <= m), whole.seconds, converged=whole.converged) for m in m_values]


def _as_accepted(method: str, train: Any) -> Any:
    """Return a sparse table as an array where the method does not take it."""
    from sklearn.utils import get_tags

    if sp.issparse(train) and not get_tags(make_seeded(method, 1, 0)).input_tags.sparse:
        return train.toarray()
    return train


def _select_one(method: str, train: Any, y: np.ndarray, m: int, seed: int, options: Mapping[str, Any]) -> Picked:
    selector = make_seeded(method, m, seed, task="classification", **options)
    started = time.perf_counter()
    selector.fit(train, y)
    seconds = time.perf_counter() - started
    return Picked(np.flatnonzero(selector.get_support()), seconds, selector, bool(selector.selection_.converged))
