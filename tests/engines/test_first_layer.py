"""Products of the first layer, dense and sparse, beside NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from tamiz.engines.design import Design
from tamiz.engines.layers import batch_memory, first_layer_products


@njit
def _call_forward(forward, matrix, rows, gamma, weights, batch, out):
    forward(matrix[0], matrix[1], matrix[2], matrix[3], matrix[4], rows, gamma, weights, batch, out)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_forward_product_is_that_of_numpy(sparse):
    random = np.random.default_rng(0)
    table = (random.normal(size=(6, 5)) * (random.random((6, 5)) < 0.6)).astype(np.float32)
    offset = random.normal(size=5).astype(np.float32) if sparse else None
    design = Design(sp.csr_matrix(table) if sparse else table, offset, owned=False)
    forward, _ = first_layer_products(design)
    rows, gamma = np.array([4, 0, 2]), random.random(5).astype(np.float32)
    weights = random.normal(size=(5, 8)).astype(np.float32)
    out = np.zeros((3, 8), dtype=np.float32)
    _call_forward(forward, tuple(design.matrix), rows, gamma, weights, batch_memory(design, 3, 8), out)
    values = table[rows] if offset is None else table[rows] + offset
    np.testing.assert_allclose(out, (values * gamma) @ weights, atol=1e-5)


def test_products_are_compiled_once():
    design = Design(np.eye(2), None, owned=False)
    assert first_layer_products(design)[0] is first_layer_products(Design(np.ones((3, 2)), None, owned=False))[0]
