"""The second-order model: scores by hand, pairs, effects, other units, and layers that predict the same."""

import numpy as np
import pytest

from tamiz.engines.additive import AdditiveModel
from tamiz.engines.pairs import PairModel


def make_model(n_outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=(3, 4)), axis=1).ravel()
    curves = AdditiveModel(knots, np.array([0, 4, 8, 12]), rng.normal(size=(n_outputs, 12)), rng.normal(size=n_outputs))
    features = np.array([0, 0, 1, 2])
    functions = np.where(np.repeat(np.arange(3), 4) == features[:, None], rng.normal(size=(4, 12)), 0.0)
    weights = np.where(features[:, None] < features, rng.normal(size=(n_outputs, 4, 4)), 0.0)
    return PairModel(curves, functions, features, weights)


def test_scores_are_curves_and_joint_effects():
    model, X = make_model(), np.random.default_rng(1).normal(size=(20, 3))
    total = model.curves.scores(X) + sum(model.pair_effects(i, j, X) for i, j in [(0, 1), (0, 2), (2, 1)])
    np.testing.assert_allclose(model.scores(X), total)
    np.testing.assert_array_equal(model.effects(1)[1], model.curves.effects(1)[1])


def test_strengths_are_norms_strongest_first():
    model = make_model()
    pairs = model.pair_strengths()
    assert sorted(pair[:2] for pair in pairs) == [(0, 1), (0, 2), (1, 2)]
    assert [pair[2] for pair in pairs] == sorted((pair[2] for pair in pairs), reverse=True)
    expected = np.sqrt(np.square(model.weights[:, :2, 2]).sum())
    assert {pair[:2]: pair[2] for pair in pairs}[0, 1] == pytest.approx(expected)


def test_other_units():
    model, X = make_model(), np.random.default_rng(1).normal(size=(20, 3))
    mean, scale = np.array([100.0, -5.0]), np.array([3.0, 0.1])
    np.testing.assert_allclose(model.rescaled(mean, scale).scores(X), model.scores(X) * scale + mean)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_layers_predict_the_same(n_outputs):
    model, X = make_model(n_outputs), 2 * np.random.default_rng(1).normal(size=(50, 3))
    (first, second, last) = model.affine_layers()
    units = np.maximum(X @ first[0].T + first[1], 0)
    squares = (units @ second[0].T + second[1]) ** 2
    np.testing.assert_allclose(squares @ last[0].T + last[1], model.scores(X), atol=1e-9)
