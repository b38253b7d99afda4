"""Products of small matrices against NumPy, whatever the number of rows and columns."""

import numpy as np
import pytest

from tamiz.engines.products import multiply, multiply_transposed, transpose


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (4, 4, 8), (9, 7, 16), (64, 13, 56)])
def test_products_are_those_of_numpy(shape):
    n, k, h = shape
    rng = np.random.default_rng(0)
    a, b, d = (rng.normal(size=size).astype(np.float32) for size in ((n, k), (k, h), (n, h)))
    out, gradient, turned = (np.full(size, 9.0, np.float32) for size in ((n, h), (k, h), (k, n)))
    multiply(a, b, out)
    multiply_transposed(a, d, gradient)
    transpose(a, turned)
    np.testing.assert_allclose(out, a @ b, atol=1e-5)
    np.testing.assert_allclose(gradient, a.T @ d, atol=1e-5)
    np.testing.assert_array_equal(turned, a.T)
