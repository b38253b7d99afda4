"""The reference of the compiled normalisation."""

import math

import numpy as np
import pytest

from tamiz.rows.exact import DEVIATIONS, FARTHEST, normalize_exact, uses_erf


@pytest.mark.parametrize("kind", DEVIATIONS)
def test_each_kind_is_its_formula(kind):
    x, mean, deviation = 3.5, 1.25, 0.75
    z = (x - mean) / deviation
    wanted = {"standard": z, "erf": math.erf(z / math.sqrt(2)), "erf2": math.erf(z / 2)}[kind]
    found = normalize_exact(np.array([[x]], dtype=np.float32), mean, deviation, kind)
    assert found.dtype == np.float64
    assert found[0, 0] == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize("kind", DEVIATIONS)
def test_constant_columns_and_far_values_stay_finite(kind):
    values = np.array([[1.0, 1e308], [-1e308, 5.0]])
    found = normalize_exact(values, np.array([1.0, -1e308]), np.array([0.0, 1e-300]), kind)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= (1.0 if uses_erf(kind) else FARTHEST)
    assert found[0, 0] == 0.0


def test_no_kind_only_converts():
    values = np.array([[1, 2]])
    found = normalize_exact(values, None, None, None)
    assert found.dtype == np.float64
    assert found is not values
    np.testing.assert_array_equal(found, values)
