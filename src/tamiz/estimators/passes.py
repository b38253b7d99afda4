"""Fit an estimator on a table of any size: select on samples of its rows, train the final model on the selected columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz._utils.extras import require
from tamiz._utils.memory import available_memory, format_memory
from tamiz._utils.validation import resolve_n_features_to_select
from tamiz.errors import SourceError
from tamiz.estimators.training import GATING_PARAMETERS, is_auto
from tamiz.rows.passes import PassRecord, Reservoir, Sample, TableStatistics, hash_rows, read_sample
from tamiz.rows.sources import BlockSource

#: Rows that a selection reads at most. Measured on 180,000 x 2,000 with 45 true columns: 20,000 rows find as many as all do.
SELECTION_ROWS = 100_000
#: Rows of the selected columns that the final model is trained on at most.
FINAL_ROWS = 10_000_000
#: Columns that the first pass keeps for the second, as a multiple of M.
COLUMNS_PER_M = 10
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
        needed = format_memory(BYTES_PER_VALUE * n_columns * _LEAST_ROWS)
        raise SourceError(
            f"{format_memory(free)} are not enough for {_LEAST_ROWS} rows of {n_columns:,} columns, which take {needed}: raise "
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


def fit_in_passes(
    estimator: Any, source: BlockSource, max_memory: float | None, seed: int, row_values: dict[str, Any]
) -> Any:
    """Fit an estimator on a source of blocks; return it.

    The first pass computes statistics of all columns and draws a sample of rows. If many columns have to go, a selection on that
    sample keeps ``COLUMNS_PER_M`` times M of them, and a second pass reads more rows of these. A selection on the sample keeps M
    columns, of which the last pass reads all rows, or ``FINAL_ROWS``, for the final model.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Not fitted.
    source : BlockSource
        The table with its target.
    max_memory : float or None
        See :func:`rows_that_fit`.
    seed : int
        Seed of the samples.
    row_values : dict of str to array or None
        Further arguments of ``fit`` with one value per row: weights, groups, time.
    """
    n_columns = source.n_columns
    limit = rows_that_fit(max_memory, n_columns, SELECTION_ROWS)
    sample = read_sample(source, limit, seed=seed, what="statistics of all columns, sample of rows")
    n_rows, passes = sample.statistics.n_rows, [sample.record]
    _check(estimator, sample, source.names)
    columns, left_out = np.arange(n_columns), np.empty(0, dtype=int)
    m = estimator.n_features_to_select
    plain = all(getattr(estimator, name) is None for name in GATING_PARAMETERS)
    if len(sample.rows) < n_rows and plain and not is_auto(m):
        wide = COLUMNS_PER_M * resolve_n_features_to_select(m, n_columns)
        # Fewer columns are worth a pass of their own where more rows fit than now.
        if 2 * wide <= n_columns and rows_that_fit(max_memory, wide, SELECTION_ROWS) > 2 * len(sample.rows):
            first = clone(estimator).set_params(n_features_to_select=wide)
            first = _fit(first, sample, None, row_values)
            order = np.argsort(first.ranking_, kind="stable")
            columns, left_out = np.sort(order[:wide]), order[wide:]
            limit = rows_that_fit(max_memory, wide, SELECTION_ROWS)
            sample = read_sample(source, limit, columns.tolist(), seed=seed, what="more rows of the best columns")
            passes.append(sample.record)
    names = None if source.names is None else np.asarray(source.names, dtype=object)
    whole = len(columns) == n_columns
    selector = (
        clone(estimator)
        if whole
        else clone(estimator).set_params(n_features_to_select=resolve_n_features_to_select(m, n_columns))
    )
    selected = _fit(selector, sample, names[columns] if names is not None and not plain else None, row_values)
    kept = columns[selected.selection_.indices]
    final, complete = selected, len(sample.rows) == n_rows
    if not complete:
        limit = rows_that_fit(max_memory, kept.size, FINAL_ROWS)
        last = read_sample(source, limit, kept.tolist(), seed=seed, what="the selected columns, for the final model")
        passes.append(last.record)
        free = dict.fromkeys(GATING_PARAMETERS)
        final = _fit(selected.copy_for(kept.size).set_params(**free), last, None, row_values)
    return _combine(estimator, selected, final, columns, left_out, names, passes)


def _fit(estimator: Any, sample: Sample, names: np.ndarray | None, row_values: dict[str, Any]) -> Any:
    given = {name: np.asarray(values)[sample.rows] for name, values in row_values.items() if values is not None}
    X: Any = sample.X
    if names is not None:
        polars = require("polars", "cli", "Naming columns of a table that is read in blocks")
        X = polars.DataFrame(X, schema=list(names), orient="row")
    return estimator._fit_rows(X, sample.y, **given)


def _check(estimator: Any, sample: Sample, names: list[str] | None) -> None:
    """Raise for values that the statistics of all rows show, and the sample may not."""
    found: TableStatistics = sample.statistics
    for wrong, what in (
        (
            found.n_missing if estimator.missing == "error" else np.zeros(1),
            "missing values: fill them, or set missing='indicator'",
        ),
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


def _combine(
    estimator: Any,
    selected: Any,
    final: Any,
    columns: np.ndarray,
    left_out: np.ndarray,
    names: np.ndarray | None,
    passes: list[PassRecord],
) -> Any:
    """Set the fitted attributes: the selection over all columns, and the final model of the selected ones."""
    record = selected.selection_
    n_columns = len(columns) + len(left_out)
    indices = columns[record.indices]
    contribution = np.zeros(n_columns)
    contribution[indices] = record.contribution[record.indices] if final is selected else final.selection_.contribution
    eliminated = columns[np.argsort(record.elimination, kind="stable")]
    others = np.concatenate([eliminated[indices.size :], left_out])
    support = np.zeros(n_columns, dtype=bool)
    support[indices] = True
    ranking, elimination = np.empty(n_columns, dtype=int), np.empty(n_columns, dtype=int)
    ranking[np.concatenate([indices[np.argsort(-contribution[indices], kind="stable")], others])] = np.arange(
        1, n_columns + 1
    )
    elimination[np.concatenate([eliminated[: indices.size], others])] = np.arange(1, n_columns + 1)
    history = dict(record.history)
    if "gamma_path_features" in history:
        history["gamma_path_features"] = columns[history["gamma_path_features"]]
    for name, value in vars(final).items():
        if name.endswith("_") and not name.startswith("__"):
            setattr(estimator, name, value)
    estimator.selection_ = replace(
        record,
        support=support,
        ranking=ranking,
        elimination=elimination,
        contribution=contribution,
        history=history,
        feature_names=names,
    )
    estimator.ranking_, estimator.gamma_ = ranking, estimator.selection_.gamma
    estimator.n_features_to_select_ = selected.n_features_to_select_
    estimator.n_features_in_ = n_columns
    if names is not None:
        estimator.feature_names_in_ = names
    estimator.passes_ = passes
    return estimator


class Stream:
    """Rows that are pushed batch by batch: a sample of them, and whether it is time for another fit."""

    def __init__(self, n_columns: int, max_memory: float | None, seed: int) -> None:
        self.reservoir = Reservoir(rows_that_fit(max_memory, n_columns, SELECTION_ROWS))
        self.seed, self.n_rows, self.n_fitted = seed, 0, 0

    def add(self, X: np.ndarray, y: np.ndarray) -> bool:
        """Add a batch; tell whether the rows have doubled since the last fit."""
        rows = np.arange(self.n_rows, self.n_rows + len(X))
        self.reservoir.add(X, y, rows, hash_rows(self.n_rows, len(X), self.seed))
        self.n_rows += len(X)
        return self.n_rows >= 2 * self.n_fitted
