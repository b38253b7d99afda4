"""The shared checks of input data, each with its message."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from tamiz._utils.validation import (
    check_finite,
    check_kept_columns,
    check_numeric_target,
    check_table,
    check_target_length,
    resolve_n_features_to_select,
)


class Anything:
    """The least that scikit-learn's checks want of an estimator."""

    def __sklearn_tags__(self):
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (10, 10), (np.int64(3), 3), (0.5, 5), (0.01, 1), (None, 5)])
def test_numbers_that_are_fine(value, expected):
    assert resolve_n_features_to_select(value, 10) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "at least 1, got 0"),
        (-3, "at least 1, got -3"),
        (11, "more than the 10 feature"),
        (1.0, "fraction out of range"),
        (1.5, "fraction out of range"),
        (0.0, "fraction out of range"),
        (float("nan"), "fraction out of range"),
        (True, "must be an integer, a fraction"),
        ("ten", "must be an integer, a fraction"),
        ([3], "must be an integer, a fraction"),
    ],
)
def test_numbers_that_are_not(value, message):
    with pytest.raises(ValueError, match=message):
        resolve_n_features_to_select(value, 10)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_the_first_bad_column_is_named(kind, bad, word):
    X = np.ones((4, 5))
    X[2, 3] = X[1, 4] = bad
    with pytest.raises(ValueError, match=f"{word} in column 3"):
        check_finite(kind(X))
    with pytest.raises(ValueError, match=f"{word} in column 'd'"):
        check_finite(kind(X), np.array(list("abcde"), dtype=object))


def test_a_finite_table_whose_sum_overflows_is_fine():
    check_finite(np.full((10, 2), 1e308))


def test_text_columns_and_double_names_are_named():
    frame = pd.DataFrame({"age": [1, 2], "city": ["a", "b"], "note": ["x", "y"]})
    with pytest.raises(ValueError, match="'city', 'note' hold text"):
        check_table(Anything(), frame, reset=True)
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Two columns are called 'a'"):
        check_table(Anything(), twice, reset=True)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "target y is None"),
        (3, "single value: 3"),
        (np.array(3), "single value"),
        ([1, 2], "3 rows of X, 2 entries"),
    ],
)
def test_targets_that_do_not_fit(y, message):
    with pytest.raises(ValueError, match=message):
        check_target_length(np.zeros((3, 2)), y)


def test_bad_numbers_in_a_target():
    with pytest.raises(ValueError, match=r"contains NaN \(first in row 1\)"):
        check_numeric_target([1.0, np.nan])
    with pytest.raises(ValueError, match="contains infinity"):
        check_numeric_target([1.0, np.inf])
    assert check_numeric_target([[1.0], [2.0]]).shape == (2,)
    assert check_numeric_target([[1.0], [2.0]], multi_output=True).shape == (2, 1)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_nan_may_stand_for_a_missing_value_and_infinity_never(kind):
    X = np.ones((4, 3))
    X[0, 0] = np.nan
    check_finite(kind(X), allow_nan=True)
    X[1, 2] = np.inf
    with pytest.raises(ValueError, match="infinity in column 2"):
        check_finite(kind(X), allow_nan=True)
    X[1, 0] = -np.inf
    with pytest.raises(ValueError, match="infinity in column 0"):
        check_finite(kind(X), allow_nan=True)


def test_names_are_kept_in_fit_and_compared_later():
    estimator, frame = Anything(), pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    checked = check_table(estimator, frame, reset=True)
    assert checked.dtype == np.float64
    assert estimator.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        check_table(estimator, frame[["b", "a"]], reset=False)
    with pytest.raises(ValueError, match="minimum of 3"):
        check_table(Anything(), frame, reset=True, min_samples=3)


def test_objects_that_are_numbers_are_fine():
    frame = pd.DataFrame({"a": np.array([1, 2], dtype=object)})
    assert check_table(Anything(), frame, reset=True).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("make", [pl.DataFrame, lambda columns: pl.LazyFrame(columns), pa.table, pd.DataFrame])
def test_frames_of_every_library(make):
    estimator = Anything()
    checked = check_table(estimator, make({"a": [1.0, 2.0], "b": [3, 4]}), reset=True)
    assert checked.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert estimator.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"column\(s\) 'b' hold text"):
        check_table(Anything(), make({"a": [1.0, 2.0], "b": ["x", "y"]}), reset=True)
    with pytest.raises(ValueError, match=r"Column\(s\) 'b' hold dates or times\. Turn them"):
        check_table(Anything(), make({"a": [1.0], "b": [datetime.datetime(2024, 1, 1)]}), reset=True)


@pytest.mark.parametrize("kind", ["datetime64[D]", "timedelta64[s]"])
def test_arrays_of_dates_are_no_numbers(kind):
    with pytest.raises(ValueError, match=r"X holds (date|time).*Turn them into numbers"):
        check_table(Anything(), np.arange(4).astype(kind).reshape(2, 2), reset=True)


@pytest.mark.parametrize("make", [pl.DataFrame, lambda columns: pl.LazyFrame(columns), pa.table, pd.DataFrame])
def test_kept_columns_are_found_by_name_in_any_order(make):
    estimator, kept = Anything(), np.array([1, 2])
    check_table(estimator, pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]}), reset=True)
    assert check_kept_columns(estimator, make({"c": [3.5], "b": [2.5]}), kept).tolist() == [[2.5, 3.5]]
    for other in ({"a": [1.0], "b": [2.0], "c": [3.0]}, {"b": [2.0], "d": [1.0]}, {"b": [2.0]}):
        assert check_kept_columns(estimator, make(other), kept) is None
    assert check_kept_columns(estimator, np.ones((1, 2)), kept) is None
    with pytest.raises(ValueError, match="contains NaN in column 'c'"):
        check_kept_columns(estimator, make({"c": [float("nan")], "b": [2.5]}), kept)
