"""Orthonormal functions of columns: ties, rare values, categories, groups, weights, sparse tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from tamiz.pairs.basis import FINER_DEGREE, category_functions, finer_functions, make_basis
from tamiz.pairs.columns import read_columns


@pytest.fixture
def random():
    return np.random.default_rng(0)


def basis_of(X, weights=None, **kwargs):
    table = read_columns(X, **{key: kwargs.pop(key) for key in ("groups", "categorical") if key in kwargs})
    n = table.n_samples
    return make_basis(table, np.full(n, 1 / n) if weights is None else weights, **kwargs)


def test_functions_are_orthonormal_whatever_the_ties(random):
    X = np.column_stack(
        [random.normal(size=200), random.poisson(0.7, 200), np.round(random.normal(size=200)), random.random(200) < 0.2]
    )
    weights = random.random(200)
    weights /= weights.sum()
    basis = basis_of(X, weights, degree=3)
    for column in range(4):
        b = basis.of_column(column)
        np.testing.assert_allclose((b * weights) @ b.T, np.eye(len(b)), atol=1e-5)
        np.testing.assert_allclose(b @ weights, 0, atol=1e-6)


def test_first_function_is_the_standardised_mean_rank(random):
    x = random.poisson(2, 300).astype(float)
    b = basis_of(x[:, None], degree=1).of_column(0)[0]
    np.testing.assert_allclose(b, stats.zscore(stats.rankdata(x)), atol=1e-5)


def test_degree_falls_with_the_number_of_distinct_values():
    x = np.repeat([0.0, 1.0, 2.0], 20)
    binary = np.repeat([0.0, 1.0], 30)
    X = np.column_stack([x, binary, np.ones(60), np.arange(60)])
    assert basis_of(X, degree=4).degrees.tolist() == [2, 1, 0, 4]


def test_values_that_are_too_rare_are_left_out():
    x = np.zeros(100)
    x[:3] = 1.0
    y = np.zeros(100)
    y[:5] = 1.0
    assert basis_of(np.column_stack([x, y])).degrees.tolist() == [0, 1]


def test_order_preserving_maps_do_not_matter(random):
    x = random.normal(size=(150, 1))
    np.testing.assert_allclose(basis_of(x).functions, basis_of(np.exp(x)).functions, atol=1e-6)


def test_categories_have_no_order(random):
    codes = random.integers(0, 4, 200).astype(float)
    first = category_functions(codes, np.full(200, 1 / 200))
    second = category_functions((codes * 7) % 5, np.full(200, 1 / 200))
    np.testing.assert_allclose(first.T @ first, second.T @ second, atol=1e-8)


def test_rare_levels_are_pooled(random):
    codes = np.concatenate([np.repeat(np.arange(3), 30), np.arange(10, 20)]).astype(float)
    b = category_functions(codes, np.full(100, 0.01))
    assert len(b) == 3
    assert np.ptp(b[:, 90:], axis=1).max() < 1e-9


def test_a_group_of_one_hot_columns_is_the_categorical_column(random):
    codes = random.integers(0, 3, 120)
    one_hot = np.eye(3)[codes]
    grouped = basis_of(one_hot, groups=["g"] * 3)
    categorical = basis_of(codes[:, None].astype(float), categorical=[0])
    assert grouped.degrees.tolist() == categorical.degrees.tolist() == [2]
    a, b = grouped.of_column(0), categorical.of_column(0)
    np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-4)


def test_sparse_functions_equal_dense_ones_of_degree_1(random):
    X = sp.random(100, 30, density=0.2, format="csr", random_state=0)
    X.data -= 0.3  # negative entries lie below the zeros
    sparse, dense = basis_of(X), basis_of(X.toarray(), degree=1)
    assert sp.issparse(sparse.functions)
    assert sparse.functions.nnz <= X.nnz
    assert sparse.degrees.tolist() == dense.degrees.tolist()
    np.testing.assert_allclose(sparse.kurtosis, dense.kurtosis, rtol=1e-4)
    for column in range(30):
        np.testing.assert_allclose(sparse.of_column(column), dense.of_column(column), atol=1e-5)


@pytest.mark.parametrize("block", [3, 256])
def test_blocks_threads_and_parts_change_nothing(random, block):
    X = random.normal(size=(50, 10))
    whole = basis_of(X)
    np.testing.assert_array_equal(basis_of(X, block=block, n_threads=3).functions, whole.functions)
    part = basis_of(X, columns=np.array([2, 7]))
    np.testing.assert_array_equal(part.of_column(1), whole.of_column(7))


def test_finer_functions_hold_products_of_a_column_with_itself(random):
    x = random.normal(size=(200, 1))
    basis = basis_of(x)
    finer = finer_functions(basis, 0, np.full(200, 1 / 200)).astype(float)
    assert len(finer) == FINER_DEGREE
    b = basis.of_column(0)
    for product in (b[0] * b[0], b[0] * b[1], b[1] * b[1]):
        centred = product - product.mean()
        left = centred - finer.T @ (finer @ centred) / 200
        assert np.abs(left).max() < 1e-3


def test_functions_of_blocks_stand_behind_each_other_whatever_each_column_has(random):
    X = random.normal(size=(60, 12))
    X[:, 2] = 1.0
    X[:, 5] = random.random(60) < 0.5
    X[:, 8] = random.integers(0, 4, 60)
    whole, pieces = basis_of(X, categorical=[8]), basis_of(X, categorical=[8], block=3, n_threads=2)
    np.testing.assert_array_equal(whole.offsets, pieces.offsets)
    np.testing.assert_array_equal(whole.functions, pieces.functions)
    np.testing.assert_array_equal(whole.kurtosis, pieces.kurtosis)
    assert whole.degrees.tolist() == [2, 2, 0, 2, 2, 1, 2, 2, 3, 2, 2, 2]
