"""Mix gradients: lengths, degenerate cases, extreme sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamiz.core import mixed_gradient, unit
from tamiz.core.step import SMALLEST_NORM

vectors = hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e100, 1e100, allow_subnormal=False))


@given(vectors)
def test_unit_has_length_one_or_is_zero(x):
    z = unit(x)
    assert np.isfinite(z).all()
    largest = np.abs(x).max()
    if largest >= SMALLEST_NORM:
        assert np.linalg.norm(z) == pytest.approx(1.0)
    elif largest * x.size < SMALLEST_NORM:
        assert not z.any()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_unit_does_not_lose_tiny_or_huge_float32_gradients(scale):
    x = np.array([3.0, -4.0], dtype=np.float32) * np.float32(scale)
    np.testing.assert_allclose(unit(x), [0.6, -0.8], rtol=1e-6)


def test_nan_does_not_become_zero():
    assert np.isnan(unit(np.array([1.0, np.nan]))).any()


@pytest.mark.parametrize("zero", ["loss", "penalty", "both"])
def test_mixing_with_a_zero_gradient_has_no_nan(zero):
    loss = np.zeros(3) if zero in ("loss", "both") else np.ones(3)
    push = np.zeros(3) if zero in ("penalty", "both") else np.ones(3)
    mixed = mixed_gradient(loss, push, 0.5)
    assert np.isfinite(mixed).all()
    assert np.linalg.norm(mixed) == pytest.approx({"loss": 0.5, "penalty": 0.5, "both": 0.0}[zero])
