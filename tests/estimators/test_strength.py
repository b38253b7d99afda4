"""The number of features left to the loss and one strength."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamiz import E2EFSClassifier, E2EFSPath, E2EFSRegressor
from tamiz.estimators.base import count_grid, strength_ranges, training_loss


@pytest.fixture(scope="module")
def planted():
    """Three columns of twelve decide the class; the rest are noise."""
    X = np.random.default_rng(0).normal(size=(300, 12))
    return X, X[:, [1, 4, 8]] @ [2.0, -2.0, 2.0] > 0


def quick(**more):
    return E2EFSClassifier(ramp_steps=1000, refinement_epochs=20, random_state=0, **more)


def test_the_count_is_found(planted):
    clf = quick(strength=0.02).fit(*planted)
    assert clf.n_features_to_select_ == 3
    assert clf.get_support(indices=True).tolist() == [1, 4, 8]
    assert clf.predict(planted[0]).shape == (300,)
    assert clf.get_params()["strength"] == 0.02


def test_a_high_price_buys_one_feature(planted):
    assert quick(strength=5.0).fit(*planted).n_features_to_select_ == 1


@pytest.mark.parametrize("strength", [0.0, -1.0, math.inf, math.nan, "much"])
def test_a_strength_that_is_none(planted, strength):
    with pytest.raises(ValueError, match="The 'strength' parameter of E2EFSClassifier must be"):
        quick(strength=strength).fit(*planted)


def test_either_a_count_or_a_strength(planted):
    with pytest.raises(ValueError, match="leave n_features_to_select at None, got 3"):
        E2EFSClassifier(3, strength=0.1).fit(*planted)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "softmax"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_the_training_loss_is_that_of_the_predictions(planted, loss, make):
    X, y = planted
    base = quick(loss=loss, class_weight=None)
    prepared = base._prepare(make(X), y, None)
    clf = base.set_params(n_features_to_select=3)._fit_prepared(prepared, owned=False)
    margin = np.where(y, 1, -1) * clf.decision_function(X)
    expected = np.maximum(0, 1 - margin) ** 2 if loss == "squared_hinge" else np.log1p(np.exp(-margin))
    assert training_loss(clf, prepared) == pytest.approx(expected.mean(), rel=1e-3)


def test_regression_counts_in_units_of_the_variance():
    X = np.random.default_rng(0).normal(size=(200, 8))
    y = 1000 + 50 * X[:, 2] + 30 * X[:, 5]
    found = E2EFSRegressor(strength=0.02, ramp_steps=1000, random_state=0).fit(X, y)
    assert found.get_support(indices=True).tolist() == [2, 5]


def test_the_path_over_the_strength(planted):
    X, y = planted
    path = E2EFSPath([1, 2, 3, 6, 12], estimator=quick()).fit(X, y)
    ranges = path.strength_ranges_
    assert list(path.losses_) == [1, 2, 3, 6, 12]
    assert 3 in ranges
    for strength in (1e-6, 1e-3, 0.02, 0.1, 10.0):
        costs = {m: loss + strength * m for m, loss in path.losses_.items()}
        assert path.at_strength(strength) is path.estimators_[min(costs, key=costs.__getitem__)]
    for bad in (0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="finite number above 0"):
            path.at_strength(bad)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.integers(1, 40), st.floats(0, 2), min_size=1, max_size=8), st.floats(1e-3, 3))
def test_ranges_hold_the_best_count(losses, strength):
    ranges = strength_ranges(losses)
    (best,) = [m for m, (low, high) in ranges.items() if low <= strength < high]
    cheapest = min(loss + strength * m for m, loss in losses.items())
    assert losses[best] + strength * best == pytest.approx(cheapest, abs=1e-9)


def test_the_grid_ends_with_all():
    assert count_grid(1) == [1]
    assert count_grid(500)[-1] == 500
    assert all(np.diff(count_grid(500)) > 0)
