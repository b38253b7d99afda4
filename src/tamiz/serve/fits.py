"""Fit what the page asks for, describe it, and score it on a fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamiz.estimators.networks import NETWORKS
from tamiz.evaluation.metrics import Parts, get_metric
from tamiz.report.columns import Columns, group_rows, kept_grids
from tamiz.serve.session import LiveError, TargetData

#: Columns that are listed below the kept ones.
N_NEXT = 8
#: What a page asks for where the data shall tell.
AUTO = "auto"
#: Networks that the page offers, and at last the choice among them.
LIVE_NETWORKS = (*(name for name, network in NETWORKS.items() if network.compiled and name != AUTO), AUTO)
SEED = 0
_MOST_LISTED = 500


@dataclass(frozen=True)
class Wish:
    """Say what a page asks for.

    Parameters
    ----------
    n_features_to_select : int or "auto"
        M, in columns of the file.
    target : str or None, default=None
        The target.
    network : str, default="linear"
        One of ``LIVE_NETWORKS``.
    keep, drop : tuple of str, default=()
        Columns of the file that are always, or never, kept.
    l2 : float or "auto", default="auto"
        Weight decay, where inner folds have chosen one.
    """

    n_features_to_select: int | str
    target: str | None = None
    network: str = "linear"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    l2: float | str = "auto"


def read_wish(record: Any) -> Wish:
    """Return what a page asks for; raise LiveError if it is nothing that can be asked.

    Examples
    --------
    >>> read_wish({"m": 3, "target": "ill", "drop": ["age"]})
    Wish(n_features_to_select=3, target='ill', network='linear', keep=(), drop=('age',), l2='auto')
    >>> read_wish({"m": "many"})
    Traceback (most recent call last):
    tamiz.serve.session.LiveError: M must be a whole number from 1 on.
    """
    if not isinstance(record, Mapping):
        raise LiveError("The request is not understood.")
    m, target, network = record.get("m"), record.get("target"), record.get("network", "linear")
    if m != AUTO and (not isinstance(m, int) or isinstance(m, bool) or m < 1):
        raise LiveError("M must be a whole number from 1 on.")
    if target is not None and not isinstance(target, str):
        raise LiveError("The target must be the name of a column.")
    if network not in LIVE_NETWORKS:
        raise LiveError(f"The network must be one of {', '.join(LIVE_NETWORKS)}.")
    lists = []
    for name in ("keep", "drop"):
        value = record.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise LiveError("Columns to force in or out must be a list of names.")
        lists.append(tuple(dict.fromkeys(value)))
    return Wish(m, target, network, keep=lists[0], drop=lists[1])


def lower_m(data: TargetData, wish: Wish) -> Wish:
    """Return the wish with an M that the table has columns for: the page knows their number after the first fit only."""
    if isinstance(wish.n_features_to_select, str):
        return wish
    free = len(data.column_names) - len(set(wish.drop) & set(data.column_names))
    return replace(wish, n_features_to_select=max(1, min(wish.n_features_to_select, free)))


def make_live_estimator(data: TargetData, wish: Wish) -> Any:
    """Return the estimator for a wish, not fitted."""
    from tamiz import E2EFSClassifier, E2EFSRegressor

    if not isinstance(wish.n_features_to_select, str):
        free = len(data.column_names) - len(wish.drop)
        if wish.n_features_to_select > free:
            raise LiveError(f"M is {wish.n_features_to_select:,}, but {free:,} columns are left to select from.")
        if len(wish.keep) > wish.n_features_to_select:
            raise LiveError(
                f"{len(wish.keep)} columns are forced in, more than M = {wish.n_features_to_select}. Raise M."
            )
    both = set(wish.keep) & set(wish.drop)
    if both:
        raise LiveError(f"{sorted(both)[0]!r} cannot be forced both in and out.")
    parameters: dict[str, Any] = {
        "n_features_to_select": wish.n_features_to_select,
        "network": wish.network,
        "l2": wish.l2,
        "random_state": SEED,
    }
    if data.is_grouped:
        parameters["groups"] = data.columns
    if wish.keep:
        parameters["keep"] = data.find_features(wish.keep, "force in")
    if wish.drop:
        parameters["drop"] = data.find_features(wish.drop, "force out")
    return (E2EFSClassifier if data.task == "classification" else E2EFSRegressor)(**parameters)


def decide_wish(
    data: TargetData, wish: Wish, check: Callable[..., None] = lambda *_: None
) -> tuple[Wish, dict[str, Any] | None]:
    """Choose M, network and weight decay on inner folds, as the estimator does, where the page leaves M or network open.

    Parameters
    ----------
    data : TargetData
        The table.
    wish : Wish
        What the page asks for.
    check : callable, default=nothing
        Called often; what it raises ends the choice.

    Returns
    -------
    (Wish, dict or None)
        The wish with everything decided, and what the page shows of the choice.
    """
    if AUTO not in (wish.n_features_to_select, wish.network):
        return wish, None
    words = []
    found = make_live_estimator(data, wish).choose(data.X, data.y, progress=check).parameters
    if "network" in found:
        words.append(f"Network {found['network']}: the simplest that the best on inner folds does not clearly beat.")
    if "n_features_to_select" in found:
        rule = "the fewest within one standard error of the best on inner folds"
        words.append(f"M = {found['n_features_to_select']:,}: {rule}.")
    wish = replace(wish, **found)
    return wish, {"m": wish.n_features_to_select, "network": wish.network, "words": " ".join(words)}


def fit_wish(data: TargetData, wish: Wish, check: Callable[..., None] = lambda *_: None) -> Any:
    """Return the estimator of all rows for a wish; ``check`` may raise to end the fit."""
    estimator = make_live_estimator(data, wish)
    return estimator.fit_prepared(data.whole(estimator), progress=check)


def describe_fit(data: TargetData, wish: Wish, fitted: Any) -> dict[str, Any]:
    """Return what the page lists: the kept columns by contribution, and those that would come next."""
    selection = fitted.selection_
    order = np.argsort(selection.ranking, kind="stable")
    weights = np.atleast_2d(fitted.coef_) if hasattr(fitted, "coef_") else None
    place = {int(column): i for i, column in enumerate(selection.indices)}
    contribution = selection.contribution
    kept: dict[str, dict[str, Any]] = {}
    following: list[str] = []
    n_categories: dict[str, int] = {}
    for name in data.columns:
        n_categories[name] = n_categories.get(name, 0) + 1
    for column in order.tolist():
        name = data.columns[column]
        if selection.support[column]:
            if name not in kept:
                kept[name] = {
                    "name": name,
                    "contribution": 0.0 if contribution is None else float(contribution[column]),
                    "direction": _direction(data, weights, place[column]) if n_categories[name] == 1 else "",
                    "forced": name in wish.keep,
                }
        elif name not in following and name not in wish.drop:
            following.append(name)
            if len(following) >= N_NEXT:
                break
    return {
        "m": len(kept),
        "columns": len(data.column_names),
        "kept": list(kept.values())[:_MOST_LISTED],
        "next": following,
        "task": data.task,
        "target": data.target,
        "notes": [note.replace("`", "") for note in data.notes],
    }


def _direction(data: TargetData, weights: np.ndarray | None, place: int) -> str:
    """Return what a large value of a column speaks for, where the model is linear and has one output."""
    if weights is None or len(data.classes) > 2 or len(weights) != 1:
        return ""
    effect = float(weights[0, place])
    if data.task == "regression":
        return f"higher → more {data.target}" if effect > 0 else f"higher → less {data.target}"
    return f"higher → {data.classes[int(effect > 0)]}"


def describe_heat(data: TargetData, fitted: Any) -> dict[str, Any] | None:
    """Return the clustered heat map of the first kept columns: z scores in tenths, clipped at 3."""
    groups = group_rows(data.y, data.task)
    selection = fitted.selection_.with_names([feature.name for feature in data.features])
    found = kept_grids(Columns(selection), data.X, data.y, data.task, groups)
    if found is None:
        return None
    heat, rows, _ = found
    return {
        "names": list(heat.rows),
        "z": np.rint(np.clip(heat.values, -3, 3) * 10).astype(int).tolist(),
        "groups": [int(np.argmax([members[row] for _, members in groups])) for row in rows],
        "labels": [label for label, _ in groups],
    }


def score_fold(
    data: TargetData, wish: Wish, number: int, check: Callable[..., None] = lambda *_: None
) -> tuple[Parts, list[str]]:
    """Return the parts of the score on the test rows of a fold, and the columns that the fold kept."""
    estimator = make_live_estimator(data, wish)
    prepared, matrix = data.fold(number, estimator)
    check()
    fitted = estimator.fit_prepared(prepared, progress=check)
    metric = get_metric(None, data.task)
    train, test = data.folds[number]
    parts = metric.measure(data.y[test], metric.read(fitted, matrix), data.y[train])
    return parts, list(dict.fromkeys(data.columns[i] for i in fitted.selection_.indices))
