"""Trained models: scores by hand, sparse rows, other units, effects, and layers or modules that predict the same."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core.losses import get_loss
from tamiz.engines.additive import AdditiveModel
from tamiz.engines.dense import DenseModel
from tamiz.engines.linear import LinearModel
from tamiz.engines.pairs import PairModel


def make_dense(sizes=(3, 4, 5, 2)):
    rng = np.random.default_rng(0)
    shapes = itertools.pairwise(sizes)
    return DenseModel(tuple((rng.normal(size=s).astype("f4"), rng.normal(size=s[1]).astype("f4")) for s in shapes))


def make_additive(n_outputs=2):
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=(3, 4)), axis=1).ravel()
    return AdditiveModel(knots, np.array([0, 4, 8, 12]), rng.normal(size=(n_outputs, 12)), rng.normal(size=n_outputs))


def make_pairs(n_outputs=2):
    rng, features = np.random.default_rng(1), np.array([0, 0, 1, 2])
    functions = np.where(np.repeat(np.arange(3), 4) == features[:, None], rng.normal(size=(4, 12)), 0.0)
    weights = np.where(features[:, None] < features, rng.normal(size=(n_outputs, 4, 4)), 0.0)
    return PairModel(make_additive(n_outputs), functions, features, weights)


MODELS = {
    "linear": LinearModel(np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]]), np.array([0.5, -1.0])),
    "additive": make_additive(),
    "pairs": make_pairs(),
    "dense": make_dense(),
}
ROWS = 2 * np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def test_sparse_rows_many_rows_and_other_units(model):
    scores, offset = model.scores(ROWS), np.array([-1.0, 0.5, 1.0])
    assert scores.shape == (50, 2)
    cells = np.where(np.abs(ROWS) < 1, 0, ROWS)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(model.scores(sp.csr_matrix(cells), offset), model.scores(cells + offset), **close)
    np.testing.assert_allclose(model.scores(np.tile(ROWS, (100, 1))), np.tile(scores, (100, 1)), **close)
    mean, scale = np.array([100.0, -5.0]), np.array([3.0, 0.1])
    np.testing.assert_allclose(model.rescaled(mean, scale).scores(ROWS), scores * scale + mean, **close)


@pytest.mark.parametrize("made", [make_dense(), make_additive(1), make_additive(), make_pairs(1), make_pairs(3)])
def test_layers_predict_the_same(made):
    *hidden, (coef, intercept) = made.affine_layers()
    units = ROWS.astype(np.float64)
    for (weights, constants), kind in zip(hidden, getattr(made, "activations", ("relu",) * 9)):
        units = units @ weights.T + constants
        units = units**2 if kind == "square" else np.maximum(units, 0)
    tolerance = 1e-4 if isinstance(made, DenseModel) else 1e-9
    np.testing.assert_allclose(units @ coef.T + intercept, made.scores(ROWS), atol=tolerance)


def test_a_module_of_pytorch_predicts_the_same():
    torch, model = pytest.importorskip("torch"), MODELS["dense"]
    module = model.to_torch()
    assert not module.training
    np.testing.assert_allclose(module(torch.from_numpy(ROWS)).detach().numpy(), model.scores(ROWS), atol=1e-4)


def test_two_competing_outputs_become_their_difference():
    model = MODELS["dense"]
    scores = model.scores(ROWS)
    found = model.decided(get_loss("softmax")).scores(ROWS)
    np.testing.assert_allclose(found, scores[:, 1:] - scores[:, :1], atol=1e-4)
    np.testing.assert_array_equal(model.decided(get_loss("logistic")).scores(ROWS), scores)


def test_a_pair_model_adds_curves_and_joint_effects():
    model = MODELS["pairs"]
    total = model.curves.scores(ROWS) + sum(model.pair_effects(i, j, ROWS) for i, j in [(0, 1), (0, 2), (2, 1)])
    np.testing.assert_allclose(model.scores(ROWS), total)
    np.testing.assert_array_equal(model.effects(1)[1], model.curves.effects(1)[1])
    pairs = model.pair_strengths()  # norms of the weights, strongest first
    assert sorted(pair[:2] for pair in pairs) == [(0, 1), (0, 2), (1, 2)]
    assert [pair[2] for pair in pairs] == sorted((pair[2] for pair in pairs), reverse=True)
    expected = np.sqrt(np.square(model.weights[:, :2, 2]).sum())
    assert {pair[:2]: pair[2] for pair in pairs}[0, 1] == pytest.approx(expected)


def test_outside_of_the_training_rows_a_curve_is_constant():
    model = AdditiveModel(np.array([-1.0, 0.0, 2.0]), np.array([0, 3]), np.array([[1.0, 0.0, 4.0]]), np.array([10.0]))
    assert model.scores(np.array([[-9.0], [1.0], [9.0]]))[:, 0].tolist() == [11.0, 12.0, 14.0]
    for column in (1, -2):
        with pytest.raises(IndexError, match="one of the 1 selected columns"):
            model.effects(column)
