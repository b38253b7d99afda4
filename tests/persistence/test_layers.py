"""Weights of estimators as layers of NumPy."""

import numpy as np
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.persistence import extract_layers


def apply(layers, X):
    values = np.asarray(X, dtype=np.float64)
    for layer in layers:
        values = values @ layer.weights.T + layer.offset
        if layer.activation == "relu":
            values = np.maximum(values, 0)
        elif layer.activation == "square":
            values = values**2
    return values


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).normal(size=(60, 6))
    return X, X[:, 1] - X[:, 4]


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_layers_give_what_the_estimator_decides(table, network):
    X, y = table
    model = E2EFSClassifier(2, network=network, normalize=None, training=Training(ramp_steps=300), random_state=0).fit(
        X, y > 0
    )
    found = apply(extract_layers(model), X[:, model.get_support()])
    np.testing.assert_allclose(found.ravel(), model.decision_function(X), atol=1e-4)


def test_numbers_come_in_the_unit_of_the_target(table):
    X, y = table
    model = E2EFSRegressor(2, normalize=None, training=Training(ramp_steps=300), random_state=0).fit(X, 100 + 20 * y)
    found = apply(extract_layers(model), X[:, model.get_support()])
    np.testing.assert_allclose(found.ravel(), model.predict(X), rtol=1e-4)
