"""Orders of rows and polynomials of ranks, against NumPy and column by column."""

import numpy as np
import pytest

from tamiz.pairs.basis import polynomials, row_orders, write_polynomials


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_orders_sort_every_row(dtype):
    random = np.random.default_rng(0)
    values = random.normal(size=(6, 500)).astype(dtype)
    values[1] = np.round(values[1])
    values[2] *= 1e-30
    values[3] *= 1e30
    values[4] = 0.0
    orders = row_orders(values)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(500), (6, 1)))
    np.testing.assert_array_equal(np.take_along_axis(values, orders, axis=1), np.sort(values, axis=1))


@pytest.mark.parametrize("n", [30, 3000])  # few are sorted after rounding, many again in full
def test_numbers_that_are_equal_in_single_precision_are_sorted(n):
    random = np.random.default_rng(0)
    close = 1.0 + 1e-12 * random.permutation(n)
    beyond = random.permutation(n) * 1e300
    tiny = (random.permutation(n) - n / 2) * 1e-60
    for row, order in zip((close, beyond, tiny), row_orders(np.array([close, beyond, tiny]))):
        np.testing.assert_array_equal(order, np.argsort(row, kind="stable"))


@pytest.mark.parametrize("equal_weights", [True, False])
def test_columns_without_ties_get_what_they_get_one_by_one(equal_weights):
    random = np.random.default_rng(0)
    values = random.normal(size=(5, 200))
    values[2] = np.round(values[2])
    values[3] = 1.0
    weights = np.ones(200) if equal_weights else random.random(200)
    weights /= weights.sum()
    out = np.empty((15, 200), dtype=np.float32)
    degrees = write_polynomials(values, weights, 3, out)
    assert degrees.tolist() == [3, 3, 3, 0, 3]
    place = 0
    for column, degree in zip(values, degrees):
        alone = np.empty((3, 200), dtype=np.float32)
        assert polynomials(column, np.argsort(column), weights, 3, alone) == degree
        np.testing.assert_allclose(out[place : place + degree], alone[:degree], atol=2e-6)
        place += degree
