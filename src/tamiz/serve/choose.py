"""Choose M and the network on inner folds where a page leaves them to the data; a newer wish ends that too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tamiz.estimators.base import fit_prepared, fit_prepared_sizes, prepare_once
from tamiz.estimators.chooser import (
    Choice,
    TrainingRows,
    choose_simplest,
    choose_unbeaten,
    find_scorer,
    inner_splits,
    round_numbers,
)
from tamiz.estimators.networks import AUTOMATIC_NETWORKS, NETWORKS
from tamiz.serve.fits import AUTO, SEED, Wish, make_live_estimator
from tamiz.serve.session import TargetData


class _InnerFolds:
    """Fit and score on folds of all rows."""

    def __init__(self, data: TargetData, wish: Wish, check: Callable[..., None]) -> None:
        self.data, self.wish, self.check = data, wish, check
        free = len(data.column_names) - len(set(wish.drop) & set(data.column_names))
        self.values = round_numbers(free, max(1, len(wish.keep)))
        self.rows = TrainingRows(data.X, data.y)
        self.splits = inner_splits(self.rows, data.task, 5, SEED, "an automatic choice")

    def choose_network(self) -> Choice:
        """Choose the simplest network."""
        names = [name for name in AUTOMATIC_NETWORKS if name in NETWORKS and NETWORKS[name].compiled]
        m = self.wish.n_features_to_select
        m = self.values[len(self.values) // 2] if isinstance(m, str) else m
        scores = np.full((len(names), len(self.splits)), np.nan)
        for place, name in enumerate(names):
            estimator = make_live_estimator(self.data, replace(self.wish, n_features_to_select=m, network=name))
            for number, split in enumerate(self.splits):
                X, y, _ = self.rows.take(split[0])
                try:
                    fitted = fit_prepared(estimator, prepare_once(estimator, X, y), progress=self.check)
                except (MemoryError, ValueError):  # it cannot be trained on this table
                    if place == 0:
                        raise
                    break
                scores[place, number] = self._score(fitted, split[1])
        return Choice(names, scores, choose_unbeaten(scores), "unbeaten", "")

    def choose_m(self, network: str) -> Choice:
        """Choose the fewest columns."""
        wish = replace(self.wish, n_features_to_select=self.values[-1], network=network)
        estimator = make_live_estimator(self.data, wish)
        scores = np.zeros((len(self.values), len(self.splits)))
        for number, (train, test) in enumerate(self.splits):
            X, y, _ = self.rows.take(train)
            prepared = prepare_once(estimator, X, y)
            for m, fitted in fit_prepared_sizes(estimator, self.values, prepared, progress=self.check):
                scores[self.values.index(m), number] = self._score(fitted, test)
        return Choice(self.values, scores, choose_simplest(scores), "one_se", "")

    def _score(self, fitted: Any, test: np.ndarray) -> float:
        self.check()
        X, y, _ = self.rows.take(test)
        return find_scorer(fitted, None, self.rows.y, self.data.task)[1](fitted, X, y)


def decide_wish(
    data: TargetData, wish: Wish, check: Callable[..., None] = lambda *_: None
) -> tuple[Wish, dict[str, Any] | None]:
    """Return the wish with M and network decided, and what the page shows of the choice; None if nothing was left open.

    Parameters
    ----------
    data : TargetData
        The table.
    wish : Wish
        What the page asks for.
    check : callable, default=nothing
        Called often; what it raises ends the choice.
    """
    words = []
    folds = _InnerFolds(data, wish, check) if AUTO in (wish.n_features_to_select, wish.network) else None
    if folds is None:
        return wish, None
    if wish.network == AUTO:
        wish = folds.wish = replace(wish, network=str(folds.choose_network().chosen))
        words.append(f"Network {wish.network}: the simplest that the best on inner folds does not clearly beat.")
    if wish.n_features_to_select == AUTO:
        wish = replace(wish, n_features_to_select=int(folds.choose_m(wish.network).chosen))
        rule = "the fewest within one standard error of the best on inner folds"
        words.append(f"M = {wish.n_features_to_select:,}: {rule}.")
    return wish, {"m": wish.n_features_to_select, "network": wish.network, "words": " ".join(words)}
