"""Columns as orthonormal functions: ties, rare values, categories, groups, weights, sparse tables."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.pairs.basis import (
    category_functions,
    in_order,
    make_basis,
    polynomials,
)
from tamiz.pairs.columns import read_columns


@pytest.fixture
def random():
    return np.random.default_rng(0)


def basis_of(X, weights=None, **kwargs):
    table = read_columns(X, **{key: kwargs.pop(key) for key in ("groups", "categorical") if key in kwargs})
    n = table.n_samples
    return make_basis(table, np.full(n, 1 / n) if weights is None else weights, **kwargs)


@pytest.mark.parametrize("equal_weights", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_are_orthonormal_whatever_the_ties(random, equal_weights, dtype):
    X = np.column_stack(
        [random.normal(size=200), random.poisson(0.7, 200), np.round(random.normal(size=200)), random.random(200) < 0.2]
    ).astype(dtype)
    weights = np.ones(200) if equal_weights else random.random(200)
    weights /= weights.sum()
    basis = basis_of(X, weights, degree=3)
    for column in range(4):
        b = basis.of_column(column)
        np.testing.assert_allclose((b * weights) @ b.T, np.eye(len(b)), atol=1e-5)
        np.testing.assert_allclose(b @ weights, 0, atol=1e-6)
        out = np.empty((3, 200), dtype=np.float32)  # all columns at once give what each gives alone
        values = np.ascontiguousarray(X[:, column])
        assert polynomials(values, np.argsort(values), weights, 3, out) == len(b)
        np.testing.assert_allclose(b, out[: len(b)], atol=2e-6)


def test_degree_falls_with_the_number_of_distinct_values_and_rare_ones_are_left_out():
    rare = np.repeat([1.0, 0.0], [3, 57])
    X = np.column_stack([np.repeat([0.0, 1, 2], 20), np.repeat([0.0, 1], 30), np.ones(60), np.arange(60), rare])
    assert basis_of(X, degree=4).degrees.tolist() == [2, 1, 0, 4, 0]


def test_categories_have_no_order_and_rare_levels_are_pooled(random):
    codes = random.integers(0, 4, 200).astype(float)
    first, second = (category_functions(c, np.full(200, 1 / 200)) for c in (codes, (codes * 7) % 5))
    np.testing.assert_allclose(first.T @ first, second.T @ second, atol=1e-8)
    many = np.concatenate([np.repeat(np.arange(3), 30), np.arange(10, 20)]).astype(float)
    b = category_functions(many, np.full(100, 0.01))
    assert len(b) == 3
    assert np.ptp(b[:, 90:], axis=1).max() < 1e-9


def test_a_group_of_one_hot_columns_is_the_categorical_column(random):
    codes = random.integers(0, 3, 120)
    grouped = basis_of(np.eye(3)[codes], groups=["g"] * 3)
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


def test_blocks_threads_and_parts_change_nothing(random, monkeypatch):
    X = random.normal(size=(60, 12))
    X[:, 2] = 1.0
    X[:, 5] = random.random(60) < 0.5
    X[:, 8] = random.integers(0, 4, 60)
    whole = basis_of(X, categorical=[8])
    monkeypatch.setattr("tamiz.pairs.basis.COLUMNS_AT_ONCE", 3)
    pieces = basis_of(X, categorical=[8], n_threads=2)
    for name in ("offsets", "functions", "kurtosis"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))
    assert whole.degrees.tolist() == [2, 2, 0, 2, 2, 1, 2, 2, 3, 2, 2, 2]
    part = basis_of(X, categorical=[8], columns=np.array([2, 7]))
    np.testing.assert_array_equal(part.of_column(1), whole.of_column(7))


def test_an_interrupt_ends_the_work_in_threads():
    done = []

    def interrupted():
        for count, _ in enumerate(in_order(done.append, range(500), 2)):
            if count == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(done) < 20
