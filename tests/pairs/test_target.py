"""Targets of the search, and their residuals."""

import numpy as np
import pytest

from tamiz.pairs.target import read_target, residuals_of


def test_classes_become_codes_and_weights_shares():
    target = read_target(np.array(["b", "a", "b", "a"]), [1, 1, 2, 0], 4)
    assert target.classes.tolist() == ["a", "b"]
    assert target.values.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert target.weights.tolist() == [0.25, 0.25, 0.5, 0.0]


def test_rare_classes_say_less():
    even, uneven = read_target([0, 1] * 10, None, 20), read_target([0] * 18 + [1] * 2, None, 20)
    assert even.n_informative == pytest.approx(20)
    assert uneven.n_informative == pytest.approx(4)
    assert read_target(np.linspace(0, 1, 20), None, 20).n_informative == 20


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([0, 1], None, "one entry for each of the 4 rows"),
        ([0, 1, None, 1], None, "contains NaN"),
        ([0.5, 0.5, 0.5, 0.5], None, "constant|one class"),
        (["a"] * 4, None, "one class only"),
        ([0, 1, 0, 1], [1, -1, 1, 1], "finite numbers from 0"),
        ([0, 1, 0, 1], [1, 1], "must hold 4"),
        (["a", "b", "c", "d"], None, "merge classes"),
    ],
)
def test_targets_that_cannot_be_searched(y, weights, message):
    with pytest.raises(ValueError, match=message):
        read_target(np.array(y, dtype=object) if None in y else y, weights, 4)


@pytest.mark.parametrize("y", [np.arange(40) % 2, np.arange(40) % 3, np.random.default_rng(0).normal(size=40) ** 3])
def test_residuals_are_centred_and_whitened(y):
    found = residuals_of(read_target(y, None, 40))
    np.testing.assert_allclose(found.values.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(found.values @ found.values.T / 40, np.eye(len(found.values)), atol=1e-5)
