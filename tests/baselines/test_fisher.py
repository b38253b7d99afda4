from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_iris, load_wine
from sklearn.feature_selection import f_classif

from tamiz.baselines import FisherScore


@pytest.mark.parametrize("loader", [load_iris, load_wine])
def test_is_the_f_statistic_up_to_a_factor(loader):
    X, y = loader(return_X_y=True)
    n_rows, n_classes = y.size, np.unique(y).size
    scores = FisherScore().fit(X, y).scores_
    np.testing.assert_allclose(scores * (n_rows - n_classes) / (n_classes - 1), f_classif(X, y)[0], rtol=1e-9)


def test_worked_by_hand():
    # Class means 1 and 5 about 3 (2 rows each): between 2*4 + 2*4 = 16. Within 1+1+1+1 = 4. Score 4.
    X = np.array([[0.0, 1.0, 7.0], [2.0, 1.0, 7.0], [4.0, 3.0, 7.0], [6.0, 3.0, 7.0]])
    selector = FisherScore(n_features_to_select=1).fit(X, [0, 0, 1, 1])
    # The second column does not vary within classes: best. The third does not vary at all: worst.
    assert selector.scores_.tolist() == [4.0, np.inf, 0.0]
    assert selector.ranking_.tolist() == [2, 1, 3]


def test_keeps_its_digits_far_from_zero():
    X, y = load_iris(return_X_y=True)
    np.testing.assert_allclose(FisherScore().fit(X + 1e7, y).scores_, FisherScore().fit(X, y).scores_, rtol=1e-6)


def test_constant_columns_of_any_value_score_zero():
    X = np.tile([0.1, 1 / 3, 1e10, -7.3], (7, 1))
    assert FisherScore().fit(X, [0, 0, 0, 1, 1, 2, 2]).scores_.tolist() == [0.0] * 4


def test_sparse_with_duplicate_entries():
    duplicated = sp.coo_array((np.ones(4), ([0, 0, 1, 3], [0, 0, 0, 0])), shape=(4, 2))
    expected = FisherScore().fit(duplicated.toarray(), [0, 0, 1, 1]).scores_
    assert FisherScore().fit(duplicated, [0, 0, 1, 1]).scores_.tolist() == expected.tolist()


@settings(max_examples=40, deadline=None)
@given(
    X=arrays(np.float64, (12, 3), elements=st.integers(-50, 50).map(float)),
    factor=st.sampled_from([-3.0, 0.5, 8.0]),
    shift=st.integers(-5, 5),
)
def test_scale_and_duplicated_rows_do_not_matter(X, factor, shift):
    y = np.arange(12) % 3
    scores = FisherScore().fit(X, y).scores_
    np.testing.assert_allclose(FisherScore().fit(X * factor + shift, y).scores_, scores, rtol=1e-7)
    np.testing.assert_allclose(FisherScore().fit(np.vstack([X, X]), np.r_[y, y]).scores_, scores, rtol=1e-7)


def test_duplicating_one_row_draws_its_class_towards_it():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    more = FisherScore().fit(np.vstack([X, X[:1]]), np.r_[y, 0]).scores_
    assert more[0] > FisherScore().fit(X, y).scores_[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 5, 12])  # in a group of four rows, in the next, and in what is left over
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_numbers_are_found_without_a_look_of_their_own(bad, row, dtype):
    X = np.random.default_rng(0).normal(size=(13, 3)).astype(dtype)
    X[row, 1] = bad
    for y in (np.arange(13) % 2, np.arange(13) // 12):
        with pytest.raises(ValueError, match=f"{'NaN' if np.isnan(bad) else 'infinity'} in column 1"):
            FisherScore().fit(X, y)
