"""Groups, forced columns, costs and indicators: how the columns of a table relate to the features of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamiz.core.gates import DROPPED, Gates, read_gates
from tamiz.engines.contract import Problem
from tamiz.rows.scaling import MissingValues

#: Parameters of the estimators that decide what gamma decides over.
GATING_PARAMETERS = ("groups", "keep", "drop", "costs", "budget")


@dataclass(frozen=True, eq=False)
class Gating:
    """How the columns of a table relate to the features of an engine.

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
        """Number the feature of each column; an indicator belongs to the group of its column."""
        feature = self.gates.column_feature
        return np.concatenate([feature, feature[self.indicated]])

    def restrict(self, problem: Problem) -> Problem:
        """Leave dropped columns out of a problem and number the features of the others."""
        feature = self.column_feature
        columns = np.flatnonzero(feature != DROPPED)
        groups = feature[columns]
        plain = np.array_equal(groups, np.arange(self.gates.n_features))
        if columns.size < feature.size:
            offset = None if problem.offset is None else problem.offset[columns]
            problem = replace(problem, X=problem.X[:, columns], offset=offset, owned=True)
        return replace(problem, groups=None if plain else groups)

    def read_columns(self, support: np.ndarray) -> np.ndarray:
        """List the columns that the model reads, indicators included, for a mask over the columns of the user."""
        indicators = self.gates.n_columns + np.flatnonzero(support[self.indicated])
        return np.concatenate([np.flatnonzero(support), indicators])

    def units_of(self, columns: np.ndarray) -> np.ndarray:
        """Number the units of selection of some columns, indicators included, from 0 on without gaps."""
        group = self.gates.group
        return np.unique(np.concatenate([group, group[self.indicated]])[columns], return_inverse=True)[1]


def read_gating(
    options: Mapping[str, Any],
    n_features_to_select: Any,
    n_columns: int,
    names: np.ndarray | None,
    missing: MissingValues | None = None,
) -> Gating | None:
    """Read groups, forced columns, costs and budget; None if every column is a feature.

    Parameters
    ----------
    options : mapping
        Values of :data:`GATING_PARAMETERS`.
    n_features_to_select : int, float or None
        M.
    n_columns : int
        Columns of the table.
    names : ndarray of str or None
        Names of the columns.
    missing : MissingValues or None, default=None
        How missing values are filled.
    """
    indicated = np.zeros(0, dtype=np.int64) if missing is None else missing.indicated
    if indicated.size == 0 and all(value is None for value in options.values()):
        return None
    gates, group_names = read_gates(n_columns, n_features_to_select, **options, names=names)
    return Gating(gates, group_names, indicated)
