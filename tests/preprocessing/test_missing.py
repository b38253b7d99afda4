"""Missing values: training statistics, indicators, dense and sparse alike."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.rows.scaling import learn_missing

X = np.array([[1.0, 0.0, np.nan], [np.nan, 2.0, 3.0], [3.0, 0.0, 5.0], [8.0, 4.0, np.nan]])
WEIGHTS = np.array([1.0, 1.0, 2.0, 1.0])


@pytest.mark.parametrize("sparse", [False, True])
def test_means_of_what_is_there_and_indicators_of_what_is_not(sparse):
    table = sp.csr_matrix(X) if sparse else X
    before = table.copy()
    missing = learn_missing(table, WEIGHTS)
    np.testing.assert_allclose(missing.fill, [15 / 4, 6 / 5, 13 / 3])
    assert missing.indicated.tolist() == [0, 2]
    filled = missing.apply(table)
    filled = filled.toarray() if sparse else filled
    np.testing.assert_allclose(filled[:, :3], np.where(np.isnan(X), missing.fill, X))
    np.testing.assert_array_equal(filled[:, 3:], np.isnan(X[:, [0, 2]]))
    after = table.toarray() if sparse else table
    np.testing.assert_array_equal(after, before.toarray() if sparse else before)


def test_some_columns_and_gaps_that_training_did_not_have():
    missing = learn_missing(X).of(np.array([1, 2]))
    assert missing.indicated.tolist() == [1]
    assert missing.apply(np.array([[np.nan, np.nan]])).tolist() == [[1.5, 4.0, 1.0]]


def test_a_column_without_values_raises():
    with pytest.raises(ValueError, match="column 1 holds missing values only"):
        learn_missing(np.array([[1.0, np.nan], [2.0, np.nan]]))
