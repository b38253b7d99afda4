"""The shared checks of input data, each with its message."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from tamiz._utils.validation import (
    check_finite,
    check_kept_columns,
    check_numeric_target,
    check_table,
    check_target_length,
    resolve_n_features_to_select,
)


def check(X, **options):
    return check_table(BaseEstimator(), X, reset=True, **options)


def with_bad(bad, kind=np.asarray):
    X = np.ones((4, 5))
    X[2, 3] = X[1, 4] = bad
    return kind(X)


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (10, 10), (np.int64(3), 3), (0.5, 5), (0.01, 1), (None, 5)])
def test_numbers_that_are_fine(value, expected):
    assert resolve_n_features_to_select(value, 10) == expected


NAMES = np.array(list("abcde"), dtype=object)
TEXTS = pd.DataFrame({"age": [1, 2], "city": ["a", "b"], "note": ["x", "y"]})
GAP = with_bad(np.inf)
GAP[0, 0] = np.nan
REFUSED = [  # call, message
    *((lambda m=m: resolve_n_features_to_select(m, 10), f"at least 1, got {m}") for m in (0, -3)),
    (lambda: resolve_n_features_to_select(11, 10), "more than the 10 feature"),
    *((lambda m=m: resolve_n_features_to_select(m, 10), "out of range") for m in (1.0, 1.5, 0.0, float("nan"))),
    *((lambda m=m: resolve_n_features_to_select(m, 10), "integer, a fraction") for m in (True, "ten", [3])),
    *(
        (lambda bad=bad, kind=kind, names=names: check_finite(with_bad(bad, kind), names), f"{word} in column {column}")
        for kind in (np.asarray, sp.csr_matrix, sp.csc_matrix)
        for bad, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"))
        for names, column in ((None, 3), (NAMES, "'d'"))
    ),
    (lambda: check_finite(GAP, allow_nan=True), "infinity in column 3"),
    (lambda: check_finite(sp.csr_matrix(GAP), allow_nan=True), "infinity in column 3"),
    (lambda: check(TEXTS), "in 'city', 'note'\\. Encode"),
    (lambda: check(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])), "Two columns are called 'a'"),
    (lambda: check(np.ones((2, 2)), min_samples=3), "minimum of 3"),
    *(
        (lambda k=kind: check(np.arange(4).astype(k).reshape(2, 2)), r"X holds (date|time).*Turn them into numbers")
        for kind in ("datetime64[D]", "timedelta64[s]")
    ),
    (lambda: check_target_length(np.zeros((3, 2)), None), "target y is None"),
    (lambda: check_target_length(np.zeros((3, 2)), 3), "single value: 3"),
    (lambda: check_target_length(np.zeros((3, 2)), np.array(3)), "single value"),
    (lambda: check_target_length(np.zeros((3, 2)), [1, 2]), "3 rows of X, 2 entries"),
    (lambda: check_numeric_target([1.0, np.nan]), r"contains NaN \(first in row 1\)"),
    (lambda: check_numeric_target([1.0, np.inf]), "contains infinity"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_fine():
    check_finite(np.full((10, 2), 1e308))  # the sum overflows
    for kind in (np.asarray, sp.csr_matrix):
        check_finite(with_bad(np.nan, kind), allow_nan=True)
    assert check(pd.DataFrame({"a": np.array([1, 2], dtype=object)})).tolist() == [[1.0], [2.0]]
    assert check_numeric_target([[1.0], [2.0]]).shape == (2,)
    assert check_numeric_target([[1.0], [2.0]], multi_output=True).shape == (2, 1)


MAKERS = [pl.DataFrame, lambda columns: pl.LazyFrame(columns), pa.table, pd.DataFrame]


@pytest.mark.parametrize("make", MAKERS)
def test_frames_of_every_library(make):
    estimator = BaseEstimator()
    checked = check_table(estimator, make({"a": [1.0, 2.0], "b": [3, 4]}), reset=True)
    assert checked.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert estimator.feature_names_in_.tolist() == ["a", "b"]
    for columns, reset, message in (
        ({"b": [3.0, 4.0], "a": [1.0, 2.0]}, False, "feature names should match"),
        ({"a": [1.0, 2.0], "b": ["x", "y"]}, True, r"there is text, or objects, in 'b'\."),
        ({"a": [1.0], "b": [datetime.datetime(2024, 1, 1)]}, True, r"Dates or times in 'b'\. Turn them"),
    ):
        with pytest.raises(ValueError, match=message):
            check_table(estimator, make(columns), reset=reset)


@pytest.mark.parametrize("make", MAKERS)
def test_kept_columns_are_found_by_name_in_any_order(make):
    estimator, kept = BaseEstimator(), np.array([1, 2])
    check_table(estimator, pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]}), reset=True)
    assert check_kept_columns(estimator, make({"c": [3.5], "b": [2.5]}), kept).tolist() == [[2.5, 3.5]]
    for other in ({"a": [1.0], "b": [2.0], "c": [3.0]}, {"b": [2.0], "d": [1.0]}, {"b": [2.0]}):
        assert check_kept_columns(estimator, make(other), kept) is None
    assert check_kept_columns(estimator, np.ones((1, 2)), kept) is None
    with pytest.raises(ValueError, match="contains NaN in column 'c'"):
        check_kept_columns(estimator, make({"c": [float("nan")], "b": [2.5]}), kept)
