"""Products of small matrices against NumPy, whatever the number of rows and columns."""

import numpy as np
import pytest

from tamiz.engines.layers import Row, multiply, multiply_transposed, new_layers, transpose, views


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (4, 4, 8), (9, 7, 16), (67, 13, 56), (17, 70, 51)])
def test_products_are_those_of_numpy(shape):
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


def test_padded_units_do_nothing():
    layers = new_layers((5,), 2, 10, np.random.default_rng(0))
    ((scale, _, weights, _, variance),) = views(layers, Row.VALUE, 0)
    assert (scale[:5] == 1).all()
    assert (scale[5:] == 0).all()
    assert (weights[5:] == 0).all()
    assert np.abs(weights[:5]).max() <= 5**-0.5
    assert (variance == 1).all()
