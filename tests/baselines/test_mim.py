from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import digamma
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from tamiz.baselines import MIM
from tamiz.baselines import information as kernels


def assert_as_scikit_learn(X, y, n_neighbors=3, seed=4, n_jobs=None):
    expected = mutual_info_classif(X, y, discrete_features=False, random_state=seed, n_neighbors=n_neighbors)
    selector = MIM(n_neighbors=n_neighbors, random_state=seed, n_jobs=n_jobs, task="classification").fit(X, y)
    np.testing.assert_allclose(selector.scores_, expected, rtol=0, atol=1e-9)


def by_definition(X, y, n_neighbors, seed):
    """Evaluate the formula of Ross (2014) entry by entry, on the same noise."""
    X = kernels.scaled_with_noise(X, np.random.RandomState(seed))
    kept = np.bincount(y)[y] > 1
    X, y = X[kept], y[kept]
    information = []
    for column in X.T:
        terms = []
        for i, value in enumerate(column):
            distances = np.abs(column - value)
            own = np.sort(np.delete(distances, i)[np.delete(y, i) == y[i]])
            k = min(n_neighbors, own.size)
            m = np.count_nonzero((distances < own[k - 1]) | (distances == 0))
            terms.append(digamma(k) - digamma(own.size + 1) - digamma(m))
        information.append(max(0.0, digamma(y.size) + np.mean(terms)))
    return information


@pytest.mark.parametrize("loader", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_scikit_learns_for_classes(loader, dtype):
    X, y = loader(return_X_y=True)
    assert_as_scikit_learn(X.astype(dtype), y)
    assert_as_scikit_learn(np.asfortranarray(X), y, n_neighbors=7, n_jobs=2)


def test_ties_and_constant_columns():
    X, y = load_digits(return_X_y=True)  # 17 values, three pixels that never change, ten classes
    assert_as_scikit_learn(X[:400], y[:400])


def test_one_column():
    X, y = load_wine(return_X_y=True)
    assert_as_scikit_learn(X[:, :1], y)


@pytest.mark.parametrize("seed", range(8))
def test_small_classes(seed):
    """Classes of one row, of fewer rows than neighbours and of a few more."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(9), [1, 2, 3, 4, 7, 8, 9, 1, 20]))
    X = rng.normal(size=(y.size, 6))
    X[:, 1] = rng.integers(0, 3, size=y.size)
    X[:, 2] = y * rng.integers(0, 2, size=y.size)
    X[:, 3] = 7.3
    X[:, 4] = 1e3 + X[:, 4].round(1)
    for n_neighbors in (1, 3, 5, 30):
        scores = MIM(n_neighbors=n_neighbors, random_state=seed, task="classification").fit(X, y).scores_
        np.testing.assert_allclose(scores, by_definition(X, y, n_neighbors, seed), rtol=0, atol=1e-12)
        # scikit-learn searches small classes by matrix products, whose rounding decides whether the k-th neighbour counts,
        # and among ties who is a neighbour at all: it finds information even in the constant column 3.
        expected = mutual_info_classif(X, y, discrete_features=False, random_state=seed, n_neighbors=n_neighbors)
        np.testing.assert_allclose(scores[[0, 5]], expected[[0, 5]], rtol=0, atol=0.05)


def test_many_classes():
    X, _ = load_wine(return_X_y=True)
    assert_as_scikit_learn(X, np.arange(len(X)) % 60)


def test_blocks_and_threads_do_not_matter(monkeypatch):
    X, y = load_wine(return_X_y=True)
    whole = MIM(random_state=1).fit(X, y).scores_
    monkeypatch.setattr(kernels, "_ENTRIES_AT_A_TIME", 5 * X.shape[0])
    assert np.array_equal(MIM(random_state=1).fit(X, y).scores_, whole)
    assert np.array_equal(MIM(random_state=1, n_jobs=2).fit(X, y).scores_, whole)


def test_the_table_is_left_as_it_was():
    X, y = load_wine(return_X_y=True)
    for order in "CF":
        table = np.array(X, order=order)
        MIM(random_state=0).fit(table, y)
        assert np.array_equal(table, X)


def test_is_scikit_learns_for_regression():
    X, y = load_diabetes(return_X_y=True)
    expected = mutual_info_regression(X, y, discrete_features=False, random_state=4)
    assert np.array_equal(MIM(task="regression", random_state=4).fit(X, y).scores_, expected)


def test_sparse_columns_are_opened_in_blocks(monkeypatch):
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr("tamiz.baselines.information._ENTRIES_AT_A_TIME", 3 * X.shape[0])
    X = X + 1e-4 * np.random.default_rng(0).normal(size=X.shape)  # no ties: then the noise does not matter
    dense = MIM(random_state=0).fit(X, y).scores_
    np.testing.assert_allclose(MIM(random_state=0).fit(sp.csr_array(X), y).scores_, dense, atol=1e-3)


def test_too_few_rows():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="Every class has one sample only"):
        MIM().fit(X, ["a", "b", "c"])
    assert MIM().fit(X, [0.5, 1.5, 1.0]).scores_.shape == (2,)  # fewer rows than neighbours


@pytest.mark.parametrize("n_neighbors", [0, 2.5, "3"])
def test_refuses_what_is_no_number_of_neighbours(n_neighbors):
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="The 'n_neighbors' parameter of MIM must be an int"):
        MIM(n_neighbors=n_neighbors).fit(X, y)
