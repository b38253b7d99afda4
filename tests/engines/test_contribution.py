from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.engines.additive import AdditiveModel
from tamiz.engines.linear import LinearModel
from tamiz.estimators.effects import contributions


class Hidden:
    """A model that only gives scores, as a network does."""

    def __init__(self, model):
        self.scores = model.scores


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(1500, 4)) * [1.0, 2.0, 3.0, 0.0]


@pytest.fixture
def linear():
    return LinearModel(np.array([[1.0, 1.0, -0.1, 5.0], [0.0, 1.0, 0.1, 5.0]]), np.array([7.0, -7.0]))


def test_a_linear_model_has_the_norm_of_its_weights_times_the_deviation(table, linear):
    expected = np.sqrt((linear.coef**2).sum(axis=0)) * table.std(axis=0)
    np.testing.assert_allclose(contributions(linear, table), expected)


def test_a_model_that_is_only_asked_for_scores_agrees(table, linear):
    np.testing.assert_allclose(contributions(Hidden(linear), table), contributions(linear, table), rtol=0.1, atol=1e-12)


def test_a_curve_has_its_deviation():
    X = np.linspace(-1, 1, 1001)[:, None]
    tent = AdditiveModel(np.array([-1.0, 0.0, 1.0]), np.array([0, 3]), np.array([[0.0, 1.0, 0.0]]), np.array([5.0]))
    expected = np.std(1 - np.abs(X))  # a straight line through it is flat
    assert contributions(tent, X)[0] == pytest.approx(expected)
    assert contributions(Hidden(tent), X)[0] == pytest.approx(expected, rel=0.1)


def test_columns_of_a_feature_count_together():
    x = np.random.default_rng(1).normal(size=800)
    X = np.column_stack([x, np.random.default_rng(2).normal(size=800), x])
    model = LinearModel(np.array([[1.0, 0.5, -1.0]]), np.zeros(1))  # the two copies cancel each other
    features = np.array([0, 1, 0])
    for asked in (model, Hidden(model)):
        found = contributions(asked, X, features=features)
        assert found[0] == pytest.approx(0.0, abs=1e-6)
        assert found[1] == pytest.approx(0.5, rel=0.1)


def test_sparse_tables_offsets_and_weights(table, linear):
    offset = np.array([1.0, -2.0, 0.5, 0.0])
    weights = np.random.default_rng(3).integers(1, 4, size=table.shape[0])
    dense = contributions(linear, np.repeat(table + offset, weights, axis=0))
    for model in (linear, Hidden(linear)):
        found = contributions(model, sp.csr_matrix(table), offset, weights)
        np.testing.assert_allclose(found, dense, rtol=1e-6 if model is linear else 0.15, atol=1e-12)
