"""Products of the first layer, dense and sparse, beside NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from tamiz.engines.design import Design
from tamiz.engines.layers import first_layer_products


@njit
def _call_forward(forward, matrix, rows, gamma, weights, batch, out):
    forward(matrix, rows, gamma, weights, batch, out)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_forward_product_is_that_of_numpy(sparse):
    random = np.random.default_rng(0)
    table = (random.normal(size=(6, 5)) * (random.random((6, 5)) < 0.6)).astype(np.float32)
    offset = random.normal(size=5).astype(np.float32) if sparse else None
    design = Design(sp.csr_matrix(table) if sparse else table, offset, owned=False)
    forward, _ = first_layer_products(design.sparse)
    rows, gamma = np.array([4, 0, 2]), random.random(5).astype(np.float32)
    weights = random.normal(size=(5, 8)).astype(np.float32)
    out = np.zeros((3, 8), dtype=np.float32)
    _call_forward(forward, design.matrix, rows, gamma, weights, np.zeros(15, np.float32), out)
    values = table[rows] if offset is None else table[rows] + offset
    np.testing.assert_allclose(out, (values * gamma) @ weights, atol=1e-5)
