"""Keep columns by a bound on the false discovery rate in place of a number: the search, and what the folds repeat of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import make_pipeline

from tamiz.errors import TableError
from tamiz.estimators.knockoffs import COPY_ADVICE, MIN_ROWS, KnockoffSelection
from tamiz.evaluation.subjects import Subject
from tamiz.rows.rows import Part, Rows


def check_fdr(fdr: Any, others: Mapping[str, Any]) -> None:
    """Raise ValueError for a rate out of range, and for arguments of ``select`` that it cannot be combined with.

    Examples
    --------
    >>> check_fdr(0.1, {"k": 5})
    Traceback (most recent call last):
    ValueError: `fdr` cannot be combined with `k`: leave one of them out.
    """
    if isinstance(fdr, (bool, str)) or not 0 < fdr < 1:
        raise ValueError(f"`fdr` must be a number between 0 and 1, such as 0.1, got {fdr!r}.")
    usual = {"k": "auto", "missing": "median"}
    for name in ("k", "budget", "costs", "keep", "drop", "weights", "missing"):
        value = others.get(name)
        if value is not None and not (isinstance(value, str) and value == usual.get(name)):
            raise ValueError(f"`fdr` cannot be combined with `{name}`: leave one of them out.")


def find_by_knockoffs(
    estimator: Any, rows: Rows, task: str, fdr: float, whole: Part, folds: Sequence[Any], report: Callable[[str], None]
) -> tuple[Subject, np.ndarray]:
    """Find columns by knockoffs on all rows.

    Parameters
    ----------
    estimator : estimator
        The model of the columns that pass; its M and ``keep`` are set to these.
    rows, task, whole, folds
        The rows, their task, all of them encoded, and the folds that will repeat the search.
    fdr : float
        Bound on the false discovery rate.
    report : callable
        Called with what was found and what is doubtful.

    Returns
    -------
    Subject
        What the folds evaluate: the search and the model behind it.
    ndarray of float, shape (n_columns,)
        Smallest rate at which each column of the table would be kept.
    """
    least, n_rows = math.ceil(1 / fdr - 1e-9), min(rows.weighted(train).size for train, _ in folds)
    if sp.issparse(whole.X):
        raise TableError("`fdr` needs a dense table: every column gets a knockoff, which is not sparse.")
    if rows.n_columns < least:
        raise TableError(f"`fdr` of {fdr:g} keeps no column or at least {least}, there are {rows.n_columns}: raise it.")
    if n_rows < MIN_ROWS:
        raise TableError(f"`fdr` needs at least {MIN_ROWS} rows in each training fold, there are {n_rows}.")
    # Levels that a fold has no rows of are constant there.
    search = make_pipeline(VarianceThreshold(), KnockoffSelection(fdr=fdr, groups=rows.names))
    subject = Subject(search, rows, task)
    subject.after = [("model", clone(estimator))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = subject.fit(whole, estimator.random_state)
        except ValueError as error:
            raise TableError(str(error).replace(COPY_ADVICE, "leave one of them out with `ignore`")) from None
    for one in caught:
        report(str(one.message))
    keep, selection = np.flatnonzero(fitted.support).tolist(), fitted.selector.selection_
    if not keep:
        raise TableError(
            f"No column passes at a false discovery rate of {fdr:g}: at least {least} columns must stand out from their "
            "knockoffs together; raise `fdr`, or give the number of columns."
        )
    report(f"Columns to keep: {len(keep):,} of {rows.n_columns:,}, which pass at a false discovery rate of {fdr:g}.")
    estimator.set_params(n_features_to_select=len(keep), keep=keep)
    known = dict(zip(selection.group_names[selection.groups].tolist(), fitted.selector.q_values_.tolist(), strict=True))
    return subject, np.array([known.get(name, 1.0) for name in rows.names])
