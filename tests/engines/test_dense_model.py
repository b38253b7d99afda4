"""A trained dense network as NumPy, as affine layers and as a module of PyTorch: one prediction."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core.losses import get_loss
from tamiz.engines.dense import DenseModel, HiddenLayer


def model(n_outputs=2, sizes=(5, 4, 3)):
    rng = np.random.default_rng(0)
    layers = []
    for inputs, units in itertools.pairwise(sizes):
        parts = (rng.normal(size=(inputs, units)), *rng.normal(size=(3, units)), rng.uniform(0.5, 2, units))
        layers.append(HiddenLayer(*(part.astype(np.float32) for part in parts)))
    coef, intercept = rng.normal(size=(n_outputs, sizes[-1])), rng.normal(size=n_outputs)
    return DenseModel(tuple(layers), coef.astype(np.float32), intercept.astype(np.float32))


def rows(n=20):
    return np.random.default_rng(1).normal(size=(n, 5)).astype(np.float32)


def test_a_module_of_pytorch_predicts_the_same():
    torch = pytest.importorskip("torch")
    module = model().to_torch()
    assert not module.training
    np.testing.assert_allclose(module(torch.from_numpy(rows())).detach().numpy(), model().scores(rows()), atol=1e-5)


def test_affine_layers_predict_the_same():
    units = rows()
    *hidden, (coef, intercept) = model().affine_layers()
    for weights, constants in hidden:
        units = np.maximum(units @ weights.T + constants, 0)
    np.testing.assert_allclose(units @ coef.T + intercept, model().scores(rows()), atol=1e-5)


def test_sparse_rows_with_an_offset():
    table, offset = rows(), np.linspace(-1, 1, 5)
    table[np.abs(table) < 0.7] = 0
    expected = model().scores(table + offset)
    np.testing.assert_allclose(model().scores(sp.csr_matrix(table), offset), expected, atol=1e-5)


def test_many_rows_go_through_in_pieces():
    many = np.tile(rows(), (300, 1))
    np.testing.assert_allclose(model().scores(many), np.tile(model().scores(rows()), (300, 1)), atol=1e-5)


def test_rescaled_outputs():
    mean, scale = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    found = model().rescaled(mean, scale).scores(rows())
    np.testing.assert_allclose(found, model().scores(rows()) * scale + mean, atol=1e-5)


def test_two_competing_outputs_become_their_difference():
    scores = model().scores(rows())
    found = model().decided(get_loss("softmax")).scores(rows())
    np.testing.assert_allclose(found, scores[:, 1:] - scores[:, :1], atol=1e-5)
    np.testing.assert_array_equal(model().decided(get_loss("logistic")).scores(rows()), scores)
