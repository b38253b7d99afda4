"""Products of the loops against NumPy: tables, also when columns are dropped, and small matrices of any shape."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from tamiz.engines.dense_loop import multiply, multiply_transposed, transpose
from tamiz.engines.design import Design


@njit
def _products(scores_product, gradient_product, _, matrix, rows, weights, width, intercept, scores, d, gradient):
    """Call the products as the loop does: from compiled code."""
    scores_product(matrix, rows, weights, width, intercept, scores)
    gradient_product(matrix, rows, d, gradient, width)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "offset"])
@pytest.mark.parametrize("n_rows", [1, 3, 4, 9])
def test_products_are_those_of_numpy_before_and_after_columns_are_dropped(kind, n_rows):
    rng = np.random.default_rng(0)
    table = np.where(rng.random((12, 7)) > 0.5, rng.normal(size=(12, 7)), 0.0).astype(np.float32)
    offset = rng.normal(size=7).astype(np.float32) if kind == "offset" else None
    X = {"dense": lambda: table, "csr": lambda: sp.csr_matrix(table), "csc": lambda: sp.csc_matrix(table)}.get(
        kind, lambda: sp.csr_matrix(table)
    )()
    full = table if offset is None else table + offset
    design = Design(X, offset, owned=False)
    for columns in (np.arange(7), np.array([1, 4, 6])):
        if columns.size < 7:
            order = np.zeros(7, dtype=np.int32)
            order[: columns.size] = columns
            design.keep(order, columns.size)
        rows = rng.integers(12, size=n_rows)
        weights = np.zeros((2, 7), np.float32)
        weights[:, : columns.size] = rng.normal(size=(2, columns.size))
        intercept, d = rng.normal(size=2).astype(np.float32), rng.normal(size=(n_rows, 2)).astype(np.float32)
        scores, gradient = np.zeros((n_rows, 2), np.float32), np.full((2, 7), 9.0, np.float32)
        _products(*design.products, design.matrix, rows, weights, columns.size, intercept, scores, d, gradient)
        part = full[rows][:, columns]
        np.testing.assert_allclose(scores, part @ weights[:, : columns.size].T + intercept, atol=1e-5)
        np.testing.assert_allclose(gradient[:, : columns.size], d.T @ part, atol=1e-5)
        assert (gradient[:, columns.size :] == 9.0).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (4, 4, 8), (9, 7, 16), (67, 13, 56), (17, 70, 51)])
def test_products_of_matrices_are_those_of_numpy(shape):
    n, k, h = shape
    rng = np.random.default_rng(0)
    a, b, d = (rng.normal(size=size).astype(np.float32) for size in ((n, k), (k, h), (n, h)))
    out, gradient, turned = (np.full(size, 9.0, np.float32) for size in ((n, h), (k, h), (k, n)))
    multiply(a, b, out, False)
    multiply_transposed(a, d, gradient)
    transpose(a, turned)
    np.testing.assert_allclose(out, a @ b, atol=1e-5)
    multiply(a, b, out, True)
    np.testing.assert_allclose(out, 2 * (a @ b), atol=2e-5)
    np.testing.assert_allclose(gradient, a.T @ d, atol=1e-5)
    np.testing.assert_array_equal(turned, a.T)


def test_a_sum_that_is_not_finite_is_told_from_one_that_is_overwritten():
    a, b = np.ones((9, 2), np.float32), np.ones((2, 33), np.float32)
    out = np.full((9, 33), np.nan, np.float32)
    multiply(a, b, out, False)
    assert (out == 2).all()
    a[3, 0] = np.nan
    multiply(a, b, out, False)
    assert np.isnan(out[3]).all()
    assert np.isnan(out).sum() == 33
