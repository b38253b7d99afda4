"""Record what every fit returns: which features were kept, in which order the rest went, and how the run got there."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# Columns beyond the kept ones that are clustered at most, the nearest first.
_MOST_CLUSTERED = 2000


@dataclass(frozen=True, eq=False)
class Selection:
    """Record one selection.

    Parameters
    ----------
    support : ndarray of bool, shape (n_features,)
        True for the features that were kept; exactly ``n_features_to_select`` of them.
    ranking : ndarray of int, shape (n_features,)
        A permutation of 1 .. n_features; 1 is the best. Kept features hold 1 .. M, by their ``contribution`` where there
        is one; of the others, what died later ranks before what died earlier.
    variant : str
        "hard", "soft" or "ranking", or the name of the method where it is not E2E-FS.
    converged : bool
        False if the step limit had to decide.
    n_steps : int
        Training steps of the whole run.
    closed_at : int
        The step at which gamma became binary with exactly M ones.
    seed : int or None
        The seed that repeats the run.
    seconds : float
        Wall time of the run.
    history : mapping of str to ndarray
        Columns of ``tamiz.core.rule.HISTORY_COLUMNS``, thinned; may also hold ``gamma_path`` (one row per recorded step, one
        column for each of ``gamma_path_features``).
    feature_names : ndarray of str or None
        The names of the columns, if the data had names.
    shape : tuple of int or None
        The shape of the mask where the inputs are not plain vectors.
    engine : str
        Which engine ran.
    groups : ndarray of int, shape (n_features,), or None
        Number of the group of each feature, where groups were selected; all features of a group are kept or none.
    group_names : ndarray of str, shape (n_groups,), or None
        The names of the groups.
    elimination : ndarray of int, shape (n_features,), or None
        The order in which the rule eliminated features, as ranks: like ``ranking``, but the kept features in the order of
        gamma when the mask was closed. None: ``ranking`` is that order.
    contribution : ndarray of float, shape (n_features,), or None
        What each kept feature contributes to the outputs of the trained model
        (:func:`~tamiz.estimators.effects.contributions`), 0 for the others. None: it was not measured.
    choices : mapping of str to mapping
        What was decided from the data, by parameter: the candidates, their scores on inner folds and the one taken.
    effects : mapping of str to ndarray or None
        Curves of the best kept features, where the model is a sum of curves: "feature" (n_curves,), "grid"
        (n_curves, n_points) in the units of the table, and "curve" (n_curves, n_outputs, n_points).

    Examples
    --------
    >>> import numpy as np
    >>> selection = Selection(support=np.array([False, True, True]), ranking=np.array([3, 2, 1]))
    >>> selection.n_features_to_select, selection.indices.tolist(), selection.ordered.tolist()
    (2, [1, 2], [2, 1])
    >>> selection
    Selection(2 of 3 features, variant='soft', steps=0, converged=True)
    """

    support: np.ndarray
    ranking: np.ndarray
    variant: str = "soft"
    converged: bool = True
    n_steps: int = 0
    closed_at: int = 0
    seed: int | None = None
    seconds: float = 0.0
    history: Mapping[str, np.ndarray] = field(default_factory=dict)
    feature_names: np.ndarray | None = None
    shape: tuple[int, ...] | None = None
    engine: str = "linear"
    groups: np.ndarray | None = None
    group_names: np.ndarray | None = None
    elimination: np.ndarray | None = None
    contribution: np.ndarray | None = None
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    effects: Mapping[str, np.ndarray] | None = None

    def __post_init__(self) -> None:
        support = np.asarray(self.support, dtype=bool).ravel()
        ranking = np.asarray(self.ranking, dtype=np.int64).ravel()
        if support.shape != ranking.shape:
            raise ValueError(f"support has {support.size} entries, ranking has {ranking.size}")
        if not np.array_equal(np.sort(ranking), np.arange(1, ranking.size + 1)):
            raise ValueError("ranking must be a permutation of 1 .. n_features")
        if not np.array_equal(support, ranking <= support.sum()):
            raise ValueError("support must hold the features of the smallest ranks")
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "ranking", ranking)
        if self.feature_names is not None:
            names = np.asarray(self.feature_names, dtype=object).ravel()
            if names.size != support.size:
                raise ValueError(f"there are {names.size} feature names for {support.size} features")
            object.__setattr__(self, "feature_names", names)
        if self.groups is not None:
            self._check_groups()

    def _check_groups(self) -> None:
        groups = np.asarray(self.groups, dtype=np.int64).ravel()
        if groups.size != self.support.size or groups.min(initial=0) < 0:
            raise ValueError(f"groups must hold a number from 0 on for each of the {self.support.size} features")
        n_groups = int(groups.max(initial=-1)) + 1
        sizes = np.bincount(groups, minlength=n_groups)
        if not sizes.all():
            raise ValueError("groups must be numbered without gaps")
        n_kept = np.bincount(groups, weights=self.support, minlength=n_groups)
        if ((n_kept > 0) & (n_kept < sizes)).any():
            raise ValueError("of a group all features must be kept, or none")
        object.__setattr__(self, "groups", groups)
        names = [f"group {i}" for i in range(n_groups)] if self.group_names is None else self.group_names
        names = np.asarray(names, dtype=object).ravel()
        if names.size != n_groups:
            raise ValueError(f"there are {names.size} names for {n_groups} groups")
        object.__setattr__(self, "group_names", names)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.support.size

    @property
    def n_features_to_select(self) -> int:
        """Number of kept features (the paper's M)."""
        return int(self.support.sum())

    @property
    def gamma(self) -> np.ndarray:
        """Mask at the end: ones and zeros."""
        return self.support.astype(np.float32)

    @property
    def indices(self) -> np.ndarray:
        """Kept features, in the order of the columns."""
        return np.flatnonzero(self.support)

    @property
    def ordered(self) -> np.ndarray:
        """Kept features, the best first."""
        return np.argsort(self.ranking, kind="stable")[: self.n_features_to_select]

    def name_of(self, index: int) -> str:
        """Name a column, or ``x<index>`` where the data had no names."""
        return f"x{index}" if self.feature_names is None else str(self.feature_names[index])

    @property
    def names(self) -> list[str]:
        """Names of the kept features, or groups, the best first: columns of the table behind a ``TableEncoder``."""
        if self.group_names is None:
            return [self.name_of(i) for i in self.ordered]
        order = np.argsort(self.group_ranking)[: np.count_nonzero(self.group_support)]
        return [str(name) for name in self.group_names[order]]

    @property
    def group_ranking(self) -> np.ndarray:
        """Rank of each group, 1 the best; without groups that of each feature.

        Examples
        --------
        >>> selection = Selection(np.array([True, False, True]), np.array([1, 3, 2]), groups=np.array([1, 0, 1]))
        >>> selection.group_ranking.tolist(), selection.group_support.tolist()
        ([2, 1], [False, True])
        """
        if self.groups is None:
            return self.ranking
        best = np.full(int(self.groups.max()) + 1, self.n_features + 1)
        np.minimum.at(best, self.groups, self.ranking)
        ranking = np.empty(best.size, dtype=np.int64)
        ranking[np.argsort(best)] = np.arange(1, best.size + 1)
        return ranking

    @property
    def group_support(self) -> np.ndarray:
        """True for the groups that were kept; without groups for the features."""
        if self.groups is None:
            return self.support
        support = np.zeros(int(self.groups.max()) + 1, dtype=bool)
        support[self.groups[self.support]] = True
        return support

    def with_names(self, names: Sequence[str] | np.ndarray | None) -> Selection:
        """Give the columns other names."""
        return replace(self, feature_names=None if names is None else np.asarray(names, dtype=object))

    def clusters(self, X: Any, threshold: float = 0.9) -> list[list[int]]:
        """Cluster the columns that carry the same information as a kept one, see :func:`correlated_clusters`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            What the selector was fitted on, as numbers.
        threshold : float, default=0.9
            Least absolute correlation of two columns of a cluster.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> X[:, 3] = -X[:, 1]
        >>> Selection(support=np.array([True, True, False, False]), ranking=np.array([2, 1, 3, 4])).clusters(X)
        [[1, 3]]
        """
        return correlated_clusters(X, self.support, self.ranking, threshold)

    def to_dict(self) -> dict[str, Any]:
        """Convert everything to plain lists and numbers, ready for JSON."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__} | {"support": self.indices}
        return json.loads(json.dumps(fields, default=lambda value: value.tolist()))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Selection:
        """Invert :meth:`to_dict`."""
        values = dict(record)
        values["support"] = np.isin(np.arange(len(values["ranking"])), values["support"])
        for name in ("history", "effects"):
            if values.get(name) is not None:
                values[name] = {key: np.asarray(value) for key, value in values[name].items()}
        for name in ("elimination", "contribution"):
            if values.get(name) is not None:
                values[name] = np.asarray(values[name])
        values["shape"] = None if values.get("shape") is None else tuple(values["shape"])
        return cls(**values)

    def to_json(self) -> str:
        """Write the record as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """Invert :meth:`to_json`."""
        return cls.from_dict(json.loads(text))

    def __repr__(self) -> str:
        kept, groups = f"{self.n_features_to_select} of {self.n_features} features", self.group_support
        kept = kept if self.groups is None else f"{groups.sum()} of {groups.size} groups, {kept}"
        return f"Selection({kept}, variant={self.variant!r}, steps={self.n_steps}, converged={self.converged})"

    def _repr_html_(self) -> str:
        """Show a short table in notebooks; every name is escaped."""
        shown = self.ordered[:20]
        rows = "".join(
            f"<tr><td>{rank}</td><td>{html.escape(self.name_of(i))}</td><td>{i}</td></tr>"
            for rank, i in enumerate(shown, start=1)
        )
        more = self.n_features_to_select - shown.size
        tail = f"<p>and {more} more</p>" if more > 0 else ""
        return (
            f"<p><b>{self.n_features_to_select} of {self.n_features} features</b> kept by "
            f"{html.escape(self.variant)} in {self.n_steps} steps ({self.seconds:.3g} s)</p>"
            f"<table><thead><tr><th>rank</th><th>feature</th><th>column</th></tr></thead><tbody>{rows}</tbody></table>{tail}"
        )

    def plot(self, kind: str = "sieve", X: Any = None, y: Any = None, **details: Any) -> Any:
        """Draw the selection with matplotlib.

        Parameters
        ----------
        kind : {"sieve", "loss", "path", "importance", "heatmap", "correlation", "stability", "effects"}, default="sieve"
            What to draw; see :func:`tamiz.report.plots.plot_selection`.
        X, y : table and target, default=None
            What the selector was fitted on, for the kinds that show it.
        **details
            ``evaluation`` and ``ax``.

        Returns
        -------
        matplotlib axes, or an array of them for "effects"
        """
        from tamiz.report.plots import plot_selection

        return plot_selection(self, kind, X, y, **details)


def correlated_clusters(X: Any, support: np.ndarray, ranking: np.ndarray, threshold: float = 0.9) -> list[list[int]]:
    """Cluster the kept columns and those that correlate with them, by complete linkage.

    Parameters
    ----------
    X : array, sparse matrix or data frame, shape (n_samples, n_features)
        Table of numbers; missing values count as the mean of their column.
    support : ndarray of bool, shape (n_features,)
        The columns that were kept.
    ranking : ndarray of int, shape (n_features,)
        Rank of each column, 1 the best.
    threshold : float, default=0.9
        Least absolute correlation of any two columns of a cluster. With few rows and many columns it is raised to what
        no pair of unrelated columns reaches (with probability 0.95).

    Returns
    -------
    list of list of int
        Clusters of two and more columns, at least one of them kept. The first of each cluster, a kept one, represents it;
        clusters and their columns are in the order of the ranking.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> X[:, 1], X[:, 4] = X[:, 0] + 0.1 * X[:, 1], -X[:, 2] + 0.1 * X[:, 4]
    >>> correlated_clusters(X, np.array([False, True, True, True, False]), np.array([4, 2, 1, 3, 5]))
    [[2, 4], [1, 0]]
    """
    from scipy import stats
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    values = X.tocsc() if hasattr(X, "tocsc") else np.asarray(X, dtype=np.float64)
    n_rows, n_columns = values.shape
    kept = np.flatnonzero(support)
    if n_columns != len(support):
        raise ValueError(f"X has {n_columns} columns, the selection {len(support)}.")
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be in (0, 1], got {threshold!r}.")
    if n_rows < 4 or not kept.size:
        return []
    t = float(stats.t.isf(0.025 / max(1, kept.size * n_columns), n_rows - 2))
    threshold = max(threshold, t / np.sqrt(n_rows - 2 + t**2)) - 1e-9

    def standardised(columns: np.ndarray) -> np.ndarray:
        part = values[:, columns]
        part = np.array(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
        present = np.isfinite(part)
        count = np.maximum(present.sum(axis=0), 1)
        part = np.where(present, part - np.where(present, part, 0.0).sum(axis=0) / count, 0.0)
        length = np.sqrt((part**2).sum(axis=0))
        return part / np.where(length > 1e-12, length, np.inf)

    wanted = standardised(kept)
    nearest = np.zeros(n_columns)
    for start in range(0, n_columns, 2048):  # in pieces, so that a wide table is never copied whole
        piece = np.arange(start, min(start + 2048, n_columns))
        nearest[piece] = np.abs(standardised(piece).T @ wanted).max(axis=1)
    nearest[kept] = np.inf
    near = np.argsort(-nearest, kind="stable")[: max(_MOST_CLUSTERED, kept.size)]
    near = np.sort(near[nearest[near] >= threshold])
    if near.size < 2:
        return []
    columns = standardised(near)
    distance = np.clip(1 - np.abs(columns.T @ columns), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    linked = hierarchy.linkage(squareform(distance, checks=False), "complete")
    labels = hierarchy.fcluster(linked, 1 - threshold, "distance")
    members: dict[int, list[int]] = {}
    for column in near[np.argsort(np.asarray(ranking)[near], kind="stable")]:
        members.setdefault(int(labels[np.searchsorted(near, column)]), []).append(int(column))
    return [cluster for cluster in members.values() if len(cluster) > 1 and support[cluster[0]]]


def one_per_cluster(estimator: Any, X: Any, y: Any, threshold: float = 0.9, **fit_params: Any) -> Any:
    """Fit a selector so that no two of the columns that it keeps correlate by the threshold or more.

    The selector is fitted; of each cluster of columns that carry the same information (:func:`correlated_clusters`) all
    but the best are dropped, and it is fitted again, until each kept column stands for a cluster of its own.

    Parameters
    ----------
    estimator : estimator
        Selector with a parameter ``drop`` and a ``selection_``, such as :class:`tamiz.E2EFSClassifier`. It is cloned.
    X : table of shape (n_samples, n_features)
        Table of numbers.
    y : array-like of shape (n_samples,)
        Target.
    threshold : float, default=0.9
        Least absolute correlation of columns that carry the same information.
    **fit_params
        Passed on to ``fit``.

    Returns
    -------
    estimator
        The fitted clone; its parameter ``drop`` holds the columns that were left out.

    Examples
    --------
    >>> from tamiz import E2EFSRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 8))
    >>> X[:, 1] = X[:, 0] + 0.05 * random.normal(size=200)
    >>> y = 3 * (X[:, 0] + X[:, 1]) + X[:, 5] + 0.1 * random.normal(size=200)
    >>> model = one_per_cluster(E2EFSRegressor(2, random_state=0), X, y)
    >>> len({0, 1} & set(model.get_support(indices=True))), model.get_support()[5].item()
    (1, True)
    """
    from sklearn.base import clone

    dropped: set[int] = set(_column_numbers(estimator.get_params()["drop"], X))
    while True:
        model = clone(estimator).set_params(drop=sorted(dropped) or None).fit(X, y, **fit_params)
        clusters = model.selection_.clusters(X, threshold)
        if not any(model.selection_.support[cluster[1:]].any() for cluster in clusters):
            return model
        dropped.update(column for cluster in clusters for column in cluster[1:])


def _column_numbers(columns: Any, X: Any) -> list[int]:
    """Find columns that are given by name or by number."""
    names = {str(name): number for number, name in enumerate(getattr(X, "columns", []))}
    return [names[column] if isinstance(column, str) else int(column) for column in columns or []]
