"""Reading tables: frames, categories, groups, and what is wrong with them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from tamiz.pairs.columns import read_columns

FRAME = pd.DataFrame({"age": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"], "smoker": [True, False, True]})


def test_names_come_from_a_frame():
    assert read_columns(FRAME[["age"]]).names == ["age"]
    assert read_columns(pl.DataFrame({"a": [1, 2], "b": [3, 4]})).names == ["a", "b"]
    assert read_columns(np.zeros((2, 2))).names == ["x0", "x1"]


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
@pytest.mark.parametrize("categorical", ["auto", ["colour", "smoker"], [1, 2], [False, True, True]])
def test_categories_become_codes(frame, categorical):
    table = read_columns(frame, categorical=categorical)
    assert table.is_categorical.tolist() == [False, True, True]
    assert table.values[:, 1].tolist() == [1.0, 0.0, 1.0]
    assert table.names == ["age", "colour", "smoker"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": FRAME}, r"text, or objects, in 'colour'\..*Encode"),
        (
            {"X": FRAME, "categorical": ["color", "colour"]},
            "categorical: there is no column 'color'. Did you mean 'colour'",
        ),
        ({"X": np.zeros((2, 2)), "categorical": ["a"]}, "categorical: the columns have no names"),
        (
            {"X": np.zeros((2, 2)), "categorical": [2]},
            "categorical: there is no column 2; columns are numbered from 0 to 1",
        ),
        ({"X": np.zeros((2, 2)), "categorical": [True]}, "categorical is a mask over 1 columns, there are 2"),
        ({"X": np.zeros((2, 2)), "categorical": "colour"}, "categorical must be a list of names or numbers"),
        ({"X": np.zeros((2, 2)), "groups": [1]}, "groups holds 1 labels for 2 columns"),
        ({"X": np.zeros((2, 2)), "groups": [1, 1], "categorical": [0]}, "categorical and in a group"),
        ({"X": sp.csr_array(np.eye(2)), "categorical": [0]}, "dense table"),
        ({"X": np.array([[1.0, np.nan]])}, "contains NaN in column 1.*Impute"),
        ({"X": np.array([["a", "b"]])}, "could not convert string to float"),
        ({"X": np.zeros(3)}, "Expected 2D array"),
        (
            {"X": pd.DataFrame({"c": ["a", None]}), "categorical": ["c"]},
            r"missing value in categorical column 'c' \(first in row 1\)",
        ),
    ],
)
def test_bad_tables_are_reported(arguments, message):
    with pytest.raises(ValueError, match=message):
        read_columns(**arguments)
