"""The paper's recipe as ``Training.paper()``: how long it trains, by what, and where it does not exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tamiz import Dense, E2EFSClassifier, E2EFSRegressor, Training
from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem
from tamiz.engines.dense import DenseEngine
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import network_schedule
from tamiz.estimators.networks import find_network


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).normal(size=(60, 40))
    return X, (X[:, 3] - X[:, 7] > 0).astype(int)


@pytest.mark.parametrize(("variant", "epochs"), [("hard", 300), ("soft", 200)])
def test_the_refinement_follows_the_added_epochs(table, variant, epochs):
    clf = E2EFSClassifier(2, training=Training.paper(), variant=variant, random_state=0).fit(*table)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert clf.selection_.converged
    assert clf.selection_.closed_at < epochs * 30
    assert clf.n_iter_ == (epochs + 150) * 30


def make_engine(name):
    if name == "torch":
        pytest.importorskip("torch")
        from tamiz.paper.networks import ThreeLayerNet
        from tamiz.torch.engine import TorchEngine

        return TorchEngine(lambda n_inputs, n_outputs: ThreeLayerNet(n_inputs, n_outputs, (4,)), n_init=1)
    return LinearEngine() if name == "linear" else DenseEngine((4,), n_init=1)


@pytest.mark.parametrize("name", ["linear", "dense", "torch"])
def test_a_closed_mask_waits_and_the_weights_are_trained_on(table, name):
    """With a rate of almost zero in the refinement, only the steps before it move the weights."""
    engine = make_engine(name)
    X, y = table
    problem = Problem(X.astype(np.float32), np.where(y == 1, 1, -1).astype(np.float32)[:, None])
    rule = Rule(40, 2, ramp_steps=100)
    schedule = network_schedule(60, 2, "classification", refinement_epochs=1, ramp_steps=100)
    schedule = replace(schedule, average=0.0, refinement_rates=(1e-12,), refinement_l2=0.0)
    fits = [
        engine.fit(problem, rule, get_loss("squared_hinge"), replace(schedule, selection_steps=steps))
        for steps in (0, 700, 900)
    ]
    at_once, waiting, longer = fits
    assert at_once.selection.closed_at == waiting.selection.closed_at < 700
    assert at_once.selection.n_steps == at_once.selection.closed_at + schedule.refinement_steps
    assert (waiting.selection.n_steps, longer.selection.n_steps) == (704, 904)
    columns = X[:, at_once.selection.indices]
    scores = [fit.model.scores(columns) for fit in fits]
    assert np.abs(scores[1] - scores[0]).max() > 1e-3
    assert np.abs(scores[2] - scores[1]).max() > 1e-3


def test_nothing_waits_without_anything_to_eliminate_and_an_open_mask_keeps_its_largest(table):
    clf = E2EFSClassifier(40, training=Training.paper(warmup_steps=0), random_state=0).fit(*table)
    assert clf.n_iter_ == 150 * 30
    clf = E2EFSClassifier(2, training=Training.paper(max_steps=60, refinement_epochs=1), random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not settle within 60 steps"):
        clf.fit(*table)
    assert clf.get_support().sum() == 2


def test_the_three_layer_network_has_one_start_and_its_own_rate(table):
    training = Training.paper(batch_size=30, refinement_epochs=1, max_steps=1500)
    network = find_network("mlp")
    assert network.schedule(training, 60, 2, "classification").learning_rate == 0.05
    assert network.engine(training).n_init == 1
    assert Dense(n_init=3).engine(training).n_init == 3
    # The paper's l2 of 100 / N would press all weights to zero on so few rows.
    clf = E2EFSClassifier(2, network="mlp", training=training, l2=1e-3, random_state=0).fit(*table)
    assert clf.n_iter_ == 10 + 1500 + 2
    assert clf.get_support(indices=True).tolist() == [3, 7]


def test_columns_are_normalised_as_in_equation_9(table):
    """Two standard deviations, and statistics that do not count rows by the weights of their classes."""
    X, y = table
    few = np.r_[np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[:5]]
    clf = E2EFSClassifier(2, training=Training.paper(refinement_epochs=1), random_state=0).fit(X[few], y[few])
    assert clf.normalize_ == "erf2"
    kept = X[few][:, clf.get_support()]
    np.testing.assert_allclose(clf.statistics_.mean, kept.mean(axis=0))
    np.testing.assert_allclose(clf.statistics_.deviation, kept.std(axis=0, ddof=1))
    usual = E2EFSClassifier(2, training=Training(refinement_epochs=1), random_state=0).fit(X[few], y[few])
    assert usual.normalize_ == "erf"
    halves = [X[few][y[few] == label][:, usual.get_support()].mean(axis=0) for label in (0, 1)]
    np.testing.assert_allclose(usual.statistics_.mean, np.mean(halves, axis=0), atol=1e-12)
    given = E2EFSClassifier(2, normalize="standard", training=Training.paper(refinement_epochs=1))
    assert given.fit(*table).normalize_ == "standard"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"network": "additive"}, "no recipe for network='additive': it classifies with network='linear' or 'mlp'"),
        ({"network": lambda n_inputs, n_outputs: None}, "The paper has no recipe for network='callable'"),
        ({"network": Dense(hidden_layer_sizes=(20,))}, r"recipe is for hidden_layer_sizes=\(50, 25, 10\), got \(20,\)"),
        ({"variant": "ranking"}, "no recipe for variant='ranking'"),
    ],
)
def test_a_recipe_that_does_not_exist(table, parameters, message):
    with pytest.raises(ValueError, match=message):
        E2EFSClassifier(2, training=Training.paper(), **parameters).fit(*table)
    with pytest.raises(ValueError, match="The paper has no recipe for regression"):
        E2EFSRegressor(2, training=Training.paper()).fit(*table)
