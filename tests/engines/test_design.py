"""Tables as the training loop sees them: products against NumPy, dropped columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from tamiz.engines.design import Design, _new_positions


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


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_numbers_of_kept_columns_become_positions(kept):
    order = np.full(len(kept), 99, dtype=np.int32)  # what stands behind the kept numbers does not matter
    numbers = np.flatnonzero(kept)
    order[: numbers.size] = numbers
    _new_positions(order, numbers.size)
    assert order.tolist() == np.where(kept, np.cumsum(kept) - 1, -1).tolist()
