"""Describe the kept features for the page, from a selection and the table it was made on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array

from tamiz._utils.validation import check_target_length
from tamiz.report.data import Distribution, Group, ImageMask, KeptFeature, StandIn
from tamiz.report.image import image_plane
from tamiz.rows.targets import decide_task
from tamiz.selection import Selection

#: Pictures are drawn of so many kept features; the others are in the table only.
N_PICTURED = 48
#: Stand-ins are sought for so many kept features, over at most so many rows.
N_WITH_STAND_INS = 200
N_ROWS_SAMPLED = 5000
_N_BINS = 24


def check_report_table(X: Any, selection: Selection) -> Any:
    """Return the table as a float array or sparse matrix (CSC) with one column per feature of the selection."""
    if not sp.issparse(X) and selection.shape is not None and np.ndim(X) == len(selection.shape) + 1:
        X = np.asarray(X).reshape(len(X), -1)
    try:
        table = check_array(X, accept_sparse="csc", dtype=np.float64, ensure_all_finite=False, ensure_min_features=1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The report needs X as a table of numbers, as the selector saw it: {error}") from error
    if table.shape[1] != selection.n_features:
        raise ValueError(
            f"X has {table.shape[1]} columns, the selection was made on {selection.n_features}. "
            "Hand in the table the selector was fitted on."
        )
    return table


def find_task(y: Any, estimator: Any = None) -> str:
    """Return "classification" or "regression": from the estimator if it says so, else from the target.

    Examples
    --------
    >>> find_task(["ill", "well"]), find_task([0.1, 2.7])
    ('classification', 'regression')
    """
    if estimator is not None and is_classifier(estimator):
        return "classification"
    return "regression" if estimator is not None and is_regressor(estimator) else decide_task(y)


def group_rows(y: Any, task: str) -> list[tuple[str, np.ndarray]]:
    """Return the classes with their rows; for a numeric target its lower, middle and upper third.

    Examples
    --------
    >>> [(label, rows.tolist()) for label, rows in group_rows(["b", "a", "b"], "classification")]
    [('a', [False, True, False]), ('b', [True, False, True])]
    """
    target = np.asarray(y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target.ravel()
    if target.ndim != 1:
        return [("all rows", np.ones(target.shape[0], dtype=bool))]
    if task == "classification":
        if target.dtype.kind == "O":
            target = target.astype(str)
        labels, codes = np.unique(target, return_inverse=True)
        return [(str(label), codes == i) for i, label in enumerate(labels)]
    target = target.astype(np.float64)
    low, high = np.nanquantile(target, [1 / 3, 2 / 3])
    thirds = [("lowest third", target <= low), ("middle third", (target > low) & (target <= high))]
    return [(label, rows) for label, rows in [*thirds, ("highest third", target > high)] if rows.any()]


def describe_distribution(values: np.ndarray, groups: Sequence[tuple[str, np.ndarray]]) -> Distribution | None:
    """Return histograms and quantiles of one feature by group; the outermost bins hold the 0.5 % tails.

    Whole numbers have bins that begin at whole numbers; zeros and ones are a share.

    Examples
    --------
    >>> shown = describe_distribution(np.array([0.0, 1.0, 2.0]), [("all", np.ones(3, dtype=bool))])
    >>> shown.groups[0].quantiles[2], sum(shown.groups[0].counts)
    (1.0, 3)
    """
    finite = np.isfinite(values)
    if not finite.any():
        return None
    distinct = np.unique(values[finite][:N_ROWS_SAMPLED])
    is_share = bool(np.isin(values[finite], (0.0, 1.0)).all())
    edges = np.array([0.0, 0.5, 1.0]) if is_share else _edges(values[finite], distinct, len(groups))
    described = []
    for label, rows in groups:
        held = values[rows & finite]
        n_missing = int((rows & ~finite).sum())
        if held.size == 0:
            described.append(Group(label, 0, (float("nan"),) * 5, (0,) * (edges.size - 1), n_missing))
            continue
        counts, _ = np.histogram(np.clip(held, edges[0], edges[-1]), bins=edges)
        quantiles = np.quantile(held, [0.05, 0.25, 0.5, 0.75, 0.95])
        described.append(Group(label, held.size, tuple(quantiles.tolist()), tuple(counts.tolist()), n_missing))
    return Distribution(tuple(edges.tolist()), tuple(described), int((~finite).sum()), is_share)


def _edges(values: np.ndarray, distinct: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the edges of the bins of some finite values."""
    low, high = np.quantile(values, [0.005, 0.995])
    if low == high:
        low, high = values.min(), values.max()
    if low == high:
        low, high = low - 0.5, high + 0.5
    n_bins = int(np.clip(np.sqrt(values.size / max(n_groups, 1)) * 2, 8, _N_BINS))
    n_bins = min(n_bins, max(distinct.size, 2))
    if bool(np.all(np.floor(distinct) == distinct)) and 2 <= high - low < 1e6:
        low, high = np.floor(low), np.ceil(high)
        width = max(1.0, np.ceil((high - low + 1) / n_bins))
        return low + width * np.arange(np.ceil((high - low + 1) / width) + 1)
    return np.linspace(low, high, n_bins + 1)


def column_of(table: Any, index: int) -> np.ndarray:
    """Return one column of a table as an array."""
    return table[:, [index]].toarray().ravel() if sp.issparse(table) else table[:, index]


def standardise_columns(table: Any, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and length 1; missing entries count as the mean, constant columns as zeros."""
    block = table[rows][:, columns]
    dense = np.array(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
    dense[~np.isfinite(dense)] = np.nan
    known = np.isfinite(dense)
    mean = np.where(known, dense, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    dense = np.where(known, dense - mean, 0.0)
    # Scaled by the largest entry first: squares of 1e200 would be infinite, those of 1e-200 nothing.
    dense /= np.maximum(np.abs(dense).max(axis=0, initial=0.0), np.finfo(float).tiny)
    return dense / np.maximum(np.linalg.norm(dense, axis=0), 1e-12)


def chance_correlation(n_rows: int, n_pairs: int, level: float = 0.05) -> float:
    """Return the correlation that the largest of so many pairs of unrelated columns exceeds with probability ``level``.

    Examples
    --------
    >>> round(chance_correlation(30, 1000), 2), round(chance_correlation(1000, 1000), 2)
    (0.67, 0.13)
    """
    if n_rows < 4:
        return 1.0
    t = float(stats.t.isf(level / 2 / max(1, n_pairs), n_rows - 2))
    return t / float(np.sqrt(n_rows - 2 + t**2))


def find_stand_ins(
    X: Any,
    selection: Selection,
    n_stand_ins: int = 3,
    threshold: float = 0.5,
    order: Sequence[int] | np.ndarray | None = None,
) -> list[tuple[StandIn, ...]]:
    """Find for each kept feature the features left out that correlate with it most.

    Among many columns and few rows the best correlation is large by chance alone, so that a stand-in must correlate more
    than the best of so many pairs of unrelated columns would, see :func:`chance_correlation`.

    Parameters
    ----------
    X : table
        As :func:`check_report_table` returns it.
    selection : Selection
        Selection.
    n_stand_ins : int, default=3
        Most features to name for each.
    threshold : float, default=0.5
        Smallest absolute correlation to name, whatever chance gives.
    order : sequence of int, default=None
        Kept columns in the order to describe; None takes that of the ranking.

    Examples
    --------
    >>> selection = Selection(support=np.array([True, False, False]), ranking=np.array([1, 2, 3]))
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    >>> [stand_in.name for stand_in in find_stand_ins(X, selection)[0]]
    ['x1']
    """
    rows = np.arange(X.shape[0])
    if rows.size > N_ROWS_SAMPLED:
        rows = np.sort(np.random.default_rng(0).choice(rows, N_ROWS_SAMPLED, replace=False))
    kept = (selection.ordered if order is None else np.asarray(order, dtype=np.int64))[:N_WITH_STAND_INS]
    others = np.flatnonzero(~selection.support)
    found: list[list[tuple[float, int]]] = [[] for _ in range(kept.size)]
    threshold = max(threshold, chance_correlation(rows.size, kept.size * others.size))
    if others.size and rows.size > 2:
        wanted = standardise_columns(X, kept, rows)
        for start in range(0, others.size, 2048):  # in pieces, so that a wide table is never copied whole
            piece = others[start : start + 2048]
            correlations = np.clip(np.round(wanted.T @ standardise_columns(X, piece, rows), 12), -1.0, 1.0)
            for i, row in enumerate(correlations):
                best = np.argsort(-np.abs(row), kind="stable")[:n_stand_ins]
                found[i].extend((float(row[j]), int(piece[j])) for j in best if abs(row[j]) >= threshold)
    return [
        tuple(StandIn(selection.name_of(j), r) for r, j in sorted(entry, key=lambda e: -abs(e[0]))[:n_stand_ins])
        for entry in found
    ]


def describe_kept(
    selection: Selection,
    X: Any = None,
    y: Any = None,
    *,
    task: str | None = None,
    order: Sequence[int] | np.ndarray | None = None,
    effects: Sequence[float | None] | None = None,
    class_effects: np.ndarray | None = None,
    fold_effects: Sequence[Sequence[float]] | None = None,
    fold_share: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
    values: np.ndarray | None = None,
) -> tuple[KeptFeature, ...]:
    """Return one record per kept feature, in the order of contribution.

    Parameters
    ----------
    selection : Selection
        Selection.
    X, y : table and target, default=None
        For distributions and stand-ins; X as :func:`check_report_table` returns it.
    task : str, default=None
        "classification" or "regression"; found from y if it is not given.
    order : sequence of int, default=None
        Kept columns in the order to show; None takes that of the ranking.
    effects : sequence of float, default=None
        The signed effect of each kept feature, in that order.
    class_effects : ndarray of shape (M, n_classes), default=None
        Effects by class, in that order.
    fold_effects : sequence of sequences of float, default=None
        Effects in the models of the folds, in that order.
    fold_share : mapping or sequence, default=None
        For each feature of the table, the share of folds that kept it.
    values : ndarray of shape (n_rows, M), default=None
        Values of the kept features as they stand in the file, NaN where missing, in the order of the columns; X may have
        replaced missing ones.

    Examples
    --------
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> describe_kept(selection, effects=[-0.5])[0].effect
    -0.5
    """
    order = selection.ordered if order is None else np.asarray(order, dtype=np.int64)
    place = {int(column): position for position, column in enumerate(selection.indices)}
    stand_ins = find_stand_ins(X, selection, order=order) if X is not None else []
    groups: list[tuple[str, np.ndarray]] = []
    if X is not None:
        if y is not None:
            check_target_length(X, y)
        groups = (
            group_rows(y, task or find_task(y)) if y is not None else [("all rows", np.ones(X.shape[0], dtype=bool))]
        )
    kept = []
    for position, index in enumerate(int(i) for i in order):
        pictured = X is not None and position < N_PICTURED
        shown = None
        if pictured:
            shown = column_of(X, index) if values is None else np.asarray(values[:, place[index]], dtype=np.float64)
        kept.append(
            KeptFeature(
                name=selection.name_of(index),
                index=index,
                rank=position + 1,
                effect=None if effects is None else effects[position],
                fold_share=None if fold_share is None else float(fold_share[index]),
                stand_ins=stand_ins[position] if position < len(stand_ins) else (),
                distribution=None if shown is None else describe_distribution(shown, groups),
                class_effects=() if class_effects is None else tuple(class_effects[position].tolist()),
                fold_effects=() if fold_effects is None else tuple(fold_effects[position]),
            )
        )
    return tuple(kept)


def mean_image(X: Any, selection: Selection) -> ImageMask | None:
    """Return the mean of the rows as one grey image, or None where the inputs have no image shape."""
    plane = image_plane(selection.shape or ())
    if plane is None:
        return None
    height, width, axis = plane
    mean = np.asarray(X.mean(axis=0)).reshape(selection.shape)
    mean = mean if axis < 0 else mean.mean(axis=axis)
    return ImageMask(height, width, tuple(np.nan_to_num(mean).ravel().tolist()))
