"""One source of rows: what is learnt is learnt from the training part, numbers refer to the rows as given."""

from __future__ import annotations

import datetime

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from tamiz.evaluation.folds import make_folds
from tamiz.rows.rows import Rows, read_time
from tamiz.tables.load import read_rows

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize("kind", [np.asarray, sp.csc_matrix, pandas.DataFrame, lambda X: X.tolist()])
def test_parts_of_arrays_matrices_and_frames(kind):
    rows = Rows(kind(X), np.arange(6), sample_weight=[1, 0, 2, 0, 1, 1])
    train, test = rows.fold([0, 1, 2], np.array([False, False, False, True, True, True]))
    for part, numbers in ((train, [0, 2]), (test, [4, 5])):
        values = part.X.toarray() if sp.issparse(part.X) else np.asarray(part.X)
        assert values.tolist() == X[numbers].tolist()
        assert part.y.tolist() == part.rows.tolist() == numbers
    assert train.sample_weight.tolist() == [1.0, 2.0]
    assert rows.whole()[1].rows.tolist() == [0, 2, 4, 5]
    assert rows.take([5, 1]).y.tolist() == [5]


def test_medians_and_categories_come_from_the_training_part():
    frame = pandas.DataFrame({"age": [1.0, None, 3.0, 100.0], "colour": ["red", "blue", "red", "green"]})
    rows = read_rows(frame, [0, 1, 0, 1])
    train, test = rows.fold([0, 2], [1, 3])
    assert test.X[:, 0].tolist() == [2.0, 100.0]  # the median of 1 and 3
    assert test.X[:, 1:].tolist() == [[0.0] * 3] * 2  # neither blue nor green was seen
    assert (rows.names, rows.n_columns, rows.is_plain) == (["age", "colour"], 2, False)
    assert train.X.shape == (2, 4)


def test_reordered_rows_take_features_and_targets_elsewhere():
    rows = Rows(X, np.arange(6))
    moved = rows.reordered(np.array([5, 4, 3, 2, 1, 0]), None)
    train, _ = moved.fold([0, 1], [2])
    assert train.X.tolist() == X[[5, 4]].tolist()
    assert train.y.tolist() == [0, 1]
    assert rows.reordered(None, np.array([1, 0, 2, 3, 4, 5])).take([0]).y.tolist() == [1]
    assert rows.take([0]).y.tolist() == [0]


TIMES = [
    [3, 1, 2],
    ["10", "9", "9.5"],
    ["2024-03-01", "2024-01-01", "2024-01-15"],
    ["2024-03", "2023", "2024-01"],
    ["2024-01-01T12:00:00+01:00", "2024-01-01T09:00:00Z", "2024-01-01T10:30:00"],
    np.array(["2024-03-01", "2024-01-01", "2024-02-01"], dtype="datetime64[D]"),
    [datetime.date(2024, 3, 1), datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)],
]


@pytest.mark.parametrize("values", TIMES)
def test_time_is_numbers_or_dates(values):
    assert read_time(values).argsort().tolist() == [1, 2, 0]


@pytest.mark.parametrize("values", [["1/1/2020", "15/1/2020"], ["Monday", "Tuesday"], ["2024-01-01", "soon"]])
def test_text_is_not_sorted_by_the_alphabet(values):
    with pytest.raises(ValueError, match="time must hold numbers or dates such as 2024-01-31"):
        Rows(np.zeros((2, 1)), time=values)
    with pytest.raises(ValueError, match="time must hold numbers or dates"):
        make_folds(np.arange(2.0), "regression", 2, time=values)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"y": [1, 2]}, "X has 6 rows, but y has 2 values"),
        ({"groups": [1, 2]}, "groups must have one value for each of the 6 rows"),
        ({"groups": [1, None, 1, 1, 1, 1]}, r"groups has no value in 1 row\."),
        ({"sample_weight": [np.nan] * 6}, "sample_weight has no value in 6"),
        ({"sample_weight": [0.0] * 6}, "none negative and not all zero"),
    ],
)
def test_what_is_wrong_with_rows(more, message):
    with pytest.raises(ValueError, match=message):
        Rows(X, **more)
    with pytest.raises(ValueError, match="rows and columns"):
        Rows(np.zeros(3))


def test_a_table_from_which_nothing_is_learnt_is_encoded_once_and_the_same():
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(12, 3)), columns=list("abc"))
    rows = read_rows(frame, np.arange(12.0))
    shuffled = rows.reordered(np.arange(12)[::-1], None)
    for one, order in ((rows, np.arange(12)), (shuffled, np.arange(12)[::-1])):
        train, test = one.fold(np.arange(8), np.arange(8, 12))
        assert np.array_equal(train.X, frame.to_numpy()[order[:8]].astype(train.X.dtype))
        assert np.array_equal(test.X, frame.to_numpy()[order[8:]].astype(test.X.dtype))
    frame.loc[0, "a"] = np.nan  # filled by the median of the training rows
    assert read_rows(frame, np.arange(12.0)).fold([1, 2, 3], [0])[1].X[0, 0] == np.float32(frame["a"][1:4].median())
