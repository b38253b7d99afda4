"""Fit an estimator on a table of any size: select on samples of its rows, train the final model on the selected columns."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz._utils.extras import require
from tamiz._utils.memory import available_memory
from tamiz._utils.progress import format_size
from tamiz._utils.validation import resolve_n_features_to_select
from tamiz.errors import SourceError
from tamiz.estimators.training import GATING_PARAMETERS, is_auto
from tamiz.rows.passes import Sample, TableStatistics, read_sample
from tamiz.rows.sources import BlockSource
from tamiz.selection import Selection

#: Rows that a selection reads at most. Measured on 180,000 x 2,000 with 45 true columns: 20,000 rows find as many as all do.
SELECTION_ROWS = 100_000
#: Rows of the selected columns that the final model is trained on at most; of ten columns they take 1.2 GB.
FINAL_ROWS = 5_000_000
#: Columns that are kept for the selection of M at least, as a multiple of M; a pass keeps a part of its columns and no fewer.
COLUMNS_PER_M, SHRINKING = 10, 3
#: Bytes that a fit takes for each value of the rows in memory: the values, their normalised copy, and copies on the way.
BYTES_PER_VALUE = 20
_LEAST_ROWS = 50


def rows_that_fit(max_memory: float | None, n_columns: int, most: int) -> int:
    """Compute how many rows of so many columns may be held at once.

    Parameters
    ----------
    max_memory : float or None
        Bytes that rows may take; None is a quarter of what is free.
    n_columns : int
        Columns of the rows.
    most : int
        Upper limit of the answer.

    Examples
    --------
    >>> rows_that_fit(200e6, 100, 1_000_000)
    100000
    """
    free = max_memory if max_memory is not None else (available_memory() or 4e9) / 4
    rows = int(min(most, free / (BYTES_PER_VALUE * n_columns)))
    if rows < _LEAST_ROWS:
        needed = format_size(BYTES_PER_VALUE * n_columns * _LEAST_ROWS)
        raise SourceError(
            f"{format_size(free)} are not enough for {_LEAST_ROWS} rows of {n_columns:,} columns, which take {needed}: raise "
            "max_memory, or leave columns out."
        )
    return rows


def has_rare_class(y: np.ndarray, task: str) -> bool:
    """Check whether a class may be missing from a sample of ``SELECTION_ROWS`` rows: fewer than 50 of its rows are expected.

    Examples
    --------
    >>> has_rare_class(np.arange(300_000) < 5, "classification"), has_rare_class(np.arange(300_000) % 2, "classification")
    (True, False)
    """
    if task != "classification" or y.ndim > 1:
        return False
    return bool(np.unique(y, return_counts=True)[1].min() * SELECTION_ROWS < 50 * len(y))


def next_width(n_columns: int, m: int, sample: Sample, limit: Callable[[int], int]) -> int | None:
    """Number of columns of which another pass should read more rows; None if the sample is good enough.

    Fewer columns are worth a pass where many have to go, and more than twice as many rows of the others fit.

    Parameters
    ----------
    n_columns, m : int
        Number of columns of the sample, and of those that are to be selected in the end.
    sample : Sample
        Rows of these columns.
    limit : callable
        ``limit(n_columns)``: rows of so many columns that fit.
    """
    wide = max(COLUMNS_PER_M * m, n_columns // SHRINKING)
    n_rows = len(sample.rows)
    if n_rows == sample.statistics.n_rows or 2 * wide > n_columns or limit(wide) <= 2 * n_rows:
        return None
    return wide


def fit_in_passes(
    estimator: Any, source: BlockSource, max_memory: float | None, seed: int, row_values: dict[str, Any]
) -> dict[str, Any]:
    """Fit an estimator on a source of blocks; return the fitted attributes.

    The first pass computes statistics of all columns and draws a sample of rows. While many columns have to go and more rows of
    fewer columns fit, a selection on the sample keeps a third of them, ``COLUMNS_PER_M`` times M at least, and another pass
    reads more rows of these (:func:`next_width`). A selection on the last sample keeps M columns, of which another pass reads all
    rows, or ``FINAL_ROWS``, for the final model.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters; it is cloned.
    source : BlockSource
        The table with its target.
    max_memory : float or None
        See :func:`rows_that_fit`.
    seed : int
        Seed of the samples.
    row_values : dict of str to array or None
        Further arguments of ``fit`` with one value per row: weights, groups, time.
    """

    def values_of(sample: Sample) -> dict[str, Any]:
        return {name: np.asarray(v)[sample.rows] for name, v in row_values.items() if v is not None}

    def limit(n_columns: int) -> int:
        return rows_that_fit(max_memory, n_columns, SELECTION_ROWS)

    n_columns, m = source.n_columns, estimator.n_features_to_select
    sample = read_sample(source, limit(n_columns), seed=seed, what="statistics of all columns, sample of rows")
    n_rows, passes = sample.statistics.n_rows, [sample.record]
    _check(estimator, sample, source.names)
    selector, columns, left_out = clone(estimator), np.arange(n_columns), np.empty(0, dtype=int)
    plain = all(getattr(estimator, name) is None for name in GATING_PARAMETERS)
    if len(sample.rows) < n_rows and plain and not is_auto(m):
        m = resolve_n_features_to_select(m, n_columns)
        selector.set_params(n_features_to_select=m)
        while wide := next_width(len(columns), m, sample, limit):
            first = clone(selector).set_params(n_features_to_select=wide).fit(sample.X, sample.y, **values_of(sample))
            order = columns[np.argsort(first.ranking_, kind="stable")]
            columns, left_out = np.sort(order[:wide]), np.concatenate([order[wide:], left_out])
            sample = read_sample(source, limit(wide), columns.tolist(), seed=seed, what="more rows of the best columns")
            passes.append(sample.record)
    X: Any = sample.X
    if source.names is not None and not plain:  # columns to keep, drop or price may be named
        X = require("polars", "cli", "Naming columns").DataFrame(X, schema=source.names, orient="row")
    fitted = selector.fit(X, sample.y, **values_of(sample))
    if len(sample.rows) < n_rows:
        kept = columns[fitted.selection_.indices]
        most = rows_that_fit(max_memory, kept.size, FINAL_ROWS)
        last = read_sample(source, most, kept.tolist(), seed=seed, what="the selected columns, for the final model")
        passes.append(last.record)
        fitted = refit(fitted, last.X, last.y, values_of(last).get("sample_weight"))
    names = None if source.names is None else np.asarray(source.names, dtype=object)
    selection = _widen(fitted.selection_, columns, left_out, names)
    found = {name: value for name, value in vars(fitted).items() if name.endswith("_") and not name.startswith("__")}
    found |= {"selection_": selection, "ranking_": selection.ranking, "gamma_": selection.gamma, "passes_": passes}
    return found | {"n_features_in_": n_columns} | ({} if names is None else {"feature_names_in_": names})


def refit(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Train the model of a fitted estimator anew on other rows of its selected columns; the selection stays.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Fitted; it is not changed.
    X : array, shape (n_samples, n_selected)
        The selected columns alone, in the order of the table.
    y, sample_weight
        As for ``fit``.

    Examples
    --------
    >>> from tamiz import E2EFSClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 8))
    >>> few = E2EFSClassifier(1, random_state=0).fit(X[:100], X[:100, 5] > 0.2)
    >>> more = refit(few, X[:, [5]], X[:, 5] > 0.2)
    >>> more.get_support(indices=True).tolist(), more.score(X, X[:, 5] > 0.2) > few.score(X, X[:, 5] > 0.2)
    ([5], True)
    """
    record, indices = estimator.selection_, estimator.selection_.indices
    groups = None if record.groups is None else record.groups[indices]
    final = estimator.copy_for(indices.size if groups is None else len(np.unique(groups)))
    final.set_params(**dict.fromkeys(GATING_PARAMETERS) | {"groups": groups})
    final = final.fit_prepared(final.prepare(X, y, sample_weight))
    found, ranking, contribution = final.selection_, record.ranking.copy(), np.zeros(record.n_features)
    ranking[indices], contribution[indices] = found.ranking, found.contribution
    effects = None if found.effects is None else {**found.effects, "feature": indices[found.effects["feature"]]}
    fitted = copy.copy(estimator)
    for name in {*vars(final)} - {"network_", "n_features_in_", "n_features_to_select_", "gamma_"}:
        if name.endswith("_"):
            setattr(fitted, name, getattr(final, name))
    fitted.selection_ = replace(record, ranking=ranking, contribution=contribution, effects=effects)
    fitted.ranking_ = ranking
    return fitted


def _check(estimator: Any, sample: Sample, names: list[str] | None) -> None:
    """Raise for values that the statistics of all rows show, and the sample may not."""
    found: TableStatistics = sample.statistics
    missing = found.n_missing if estimator.missing == "error" else np.zeros(1)
    for wrong, what in (
        (missing, "missing values: fill them, or set missing='indicator'"),
        (np.isinf(found.minimum) | np.isinf(found.maximum), "infinite values: replace them"),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            name = first if names is None else repr(names[first])
            raise SourceError(f"Column {name} has {what} ({np.count_nonzero(wrong):,} such columns).")
    if found.n_missing_targets:
        raise SourceError(f"{found.n_missing_targets:,} rows have no target: leave them out.")
    if estimator._task == "classification" and found.classes is not None:
        absent = [label for label in found.classes if label not in set(np.unique(sample.y).tolist())]
        if absent:
            raise SourceError(
                f"No row of the class {absent[0]!r} ({found.classes[absent[0]]:,} of {found.n_rows:,} rows) is in the sample of "
                f"{len(sample.rows):,}: leave out classes that rare, or raise max_memory."
            )


def _widen(record: Selection, columns: np.ndarray, left_out: np.ndarray, names: np.ndarray | None) -> Selection:
    """Number the columns of a selection as in the table; columns that an earlier pass left out rank last."""
    if not left_out.size:
        return replace(record, feature_names=names)
    n_columns = len(columns) + len(left_out)
    wide: dict[str, Any] = {"feature_names": names, "history": dict(record.history)}
    for name in ("ranking", "elimination"):
        order = np.concatenate([columns[np.argsort(getattr(record, name), kind="stable")], left_out])
        wide[name] = np.argsort(order) + 1
    for name in ("support", "contribution"):
        wide[name] = np.zeros(n_columns, dtype=getattr(record, name).dtype)
        wide[name][columns] = getattr(record, name)
    if "gamma_path_features" in record.history:
        wide["history"]["gamma_path_features"] = columns[record.history["gamma_path_features"]]
    if record.effects is not None:
        wide["effects"] = {**record.effects, "feature": columns[record.effects["feature"]]}
    return replace(record, **wide)
