"""Apply groups, forced columns, costs and indicators of missing values around an engine that knows features only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamiz.core.gate_options import possible_counts, read_gates
from tamiz.core.gates import DROPPED, Gates
from tamiz.engines import Problem
from tamiz.preprocessing.missing import MissingValues
from tamiz.selection import Selection

#: Parameters of the estimators that decide what gamma decides over.
OPTIONS = ("groups", "keep", "drop", "costs", "budget")


@dataclass(frozen=True, eq=False)
class Gating:
    """Hold how the columns of the table relate to the features of an engine.

    Parameters
    ----------
    gates : Gates
        Over the columns that the user gave.
    group_names : ndarray of str or None
        Names of the groups, if groups were given.
    indicated : ndarray of int
        Columns whose indicators of missing values stand behind the columns of the user, in this order.
    """

    gates: Gates
    group_names: np.ndarray | None
    indicated: np.ndarray

    @property
    def column_feature(self) -> np.ndarray:
        """Return the feature of each column, the indicators included: they belong to the group of their column."""
        feature = self.gates.column_feature
        return np.concatenate([feature, feature[self.indicated]])

    def restrict(self, problem: Problem) -> Problem:
        """Return the problem without dropped columns, with the features of the others."""
        feature = self.column_feature
        columns = np.flatnonzero(feature != DROPPED)
        groups = feature[columns]
        plain = np.array_equal(groups, np.arange(self.gates.n_features))
        if columns.size < feature.size:
            offset = None if problem.offset is None else problem.offset[columns]
            problem = replace(problem, X=problem.X[:, columns], offset=offset, owned=True)
        return replace(problem, groups=None if plain else groups)

    def read_columns(self, support: np.ndarray) -> np.ndarray:
        """Return the columns that the model reads, indicators included, for a mask over the columns of the user."""
        indicators = self.gates.n_columns + np.flatnonzero(support[self.indicated])
        return np.concatenate([np.flatnonzero(support), indicators])

    def units_of(self, columns: np.ndarray) -> np.ndarray:
        """Return the unit of selection of each of some columns, indicators included, numbered from 0 on without gaps."""
        group = self.gates.group
        return np.unique(np.concatenate([group, group[self.indicated]])[columns], return_inverse=True)[1]

    def selection_of_columns(self, selection: Selection) -> Selection:
        """Return the record of the columns of the user from that of the features."""
        ranking, support = self.gates.rank_columns(selection.ranking, int(selection.support.sum()))
        history = dict(selection.history)
        if "gamma_path_features" in history:
            history["gamma_path_features"] = self.gates.first_columns()[history["gamma_path_features"]]
        return replace(
            selection,
            support=support,
            ranking=ranking,
            history=history,
            groups=None if self.group_names is None else self.gates.group,
            group_names=self.group_names,
        )


def read_gating(
    estimator: Any, n_columns: int, names: np.ndarray | None, missing: MissingValues | None = None
) -> Gating | None:
    """Return what the parameters of an estimator ask for; None if every column is a feature.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters are read.
    n_columns : int
        Columns of the table.
    names : ndarray of str or None
        Names of the columns.
    missing : MissingValues or None, default=None
        How missing values are filled.
    """
    options = {name: getattr(estimator, name) for name in OPTIONS}
    indicated = np.zeros(0, dtype=np.int64) if missing is None else missing.indicated
    if indicated.size == 0 and all(value is None for value in options.values()):
        return None
    gates, group_names = read_gates(n_columns, estimator.n_features_to_select, **options, names=names)
    return Gating(gates, group_names, indicated)


def selectable(estimator: Any, n_columns: int, names: np.ndarray | None) -> tuple[int, int]:
    """Return the least and the largest M that the parameters of an estimator leave possible, whatever its own M is.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters are read.
    n_columns : int
        Columns of the table.
    names : ndarray of str or None
        Names of the columns.
    """
    options = {name: getattr(estimator, name) for name in OPTIONS}
    if estimator.budget is not None:
        read_gating(estimator, n_columns, names)  # raises unless M is None
    return possible_counts(n_columns, **options, names=names)
