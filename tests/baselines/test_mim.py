from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_wine
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from tamiz.baselines import MIM


def test_is_scikit_learns_for_classes():
    X, y = load_wine(return_X_y=True)
    expected = mutual_info_classif(X, y, discrete_features=False, random_state=4)
    assert np.array_equal(MIM(random_state=4).fit(X, y).scores_, expected)
    expected = mutual_info_classif(X, y, discrete_features=False, random_state=4, n_neighbors=7)
    assert np.array_equal(MIM(random_state=4, n_neighbors=7, n_jobs=2).fit(X, y).scores_, expected)


def test_is_scikit_learns_for_regression():
    X, y = load_diabetes(return_X_y=True)
    expected = mutual_info_regression(X, y, discrete_features=False, random_state=4)
    assert np.array_equal(MIM(task="regression", random_state=4).fit(X, y).scores_, expected)


def test_sparse_columns_are_opened_in_blocks(monkeypatch):
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr("tamiz.baselines.mim._ENTRIES_AT_A_TIME", 3 * X.shape[0])
    X = X + 1e-4 * np.random.default_rng(0).normal(size=X.shape)  # no ties: then the noise does not matter
    dense = MIM(random_state=0).fit(X, y).scores_
    np.testing.assert_allclose(MIM(random_state=0).fit(sp.csr_array(X), y).scores_, dense, atol=1e-3)


def test_too_few_rows():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="Every class has one sample only"):
        MIM().fit(X, ["a", "b", "c"])
    assert MIM().fit(X, [0.5, 1.5, 1.0]).scores_.shape == (2,)  # fewer rows than neighbours
