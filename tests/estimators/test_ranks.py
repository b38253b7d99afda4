"""Ranks of kept columns say what they contribute."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor, Training


@pytest.fixture(scope="module")
def strong_and_weak():
    """300 x 200; twelve columns matter, the first more than the next."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 200))
    return X, X[:, :12] @ np.linspace(2.0, 0.8, 12) + 0.5 * rng.normal(size=300)


@pytest.mark.parametrize("network", ["linear", "additive", "mlp"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_strongest_columns_have_the_first_ranks(strong_and_weak, network):
    X, y = strong_and_weak
    n_kept = 100 if network == "linear" else 20
    steps = {} if network == "linear" else {"training": Training(ramp_steps=500, refinement_epochs=30)}
    model = E2EFSRegressor(n_kept, network=network, l2=0.003, random_state=0, **steps).fit(X, y)
    first = model.selection_.ordered[:12]
    assert len({*first.tolist()} & {*range(12)}) >= (12 if network != "mlp" else 10)
    contribution = model.selection_.contribution
    assert np.all(np.diff(contribution[model.selection_.ordered]) <= 0)
    assert (contribution[~model.get_support()] == 0).all()


def test_top_m_is_the_support_and_the_order_of_elimination_is_kept(strong_and_weak):
    X, y = strong_and_weak
    model = E2EFSClassifier(30, training=Training(ramp_steps=1000), random_state=0).fit(X, y > 0)
    selection = model.selection_
    np.testing.assert_array_equal(model.ranking_ <= 30, model.get_support())
    np.testing.assert_array_equal(selection.elimination <= 30, model.get_support())
    gone = ~model.get_support()
    np.testing.assert_array_equal(model.ranking_[gone], selection.elimination[gone])
    assert sorted(selection.elimination.tolist()) == list(range(1, 201))
    effect = np.abs(model.coef_[0, selection.indices])  # normalised columns differ little in their deviation
    order = np.argsort(model.ranking_[selection.indices])
    assert np.corrcoef(effect[order], np.arange(30))[0, 1] < -0.8


def test_units_of_columns_and_targets_do_not_matter(strong_and_weak):
    X, y = strong_and_weak
    scales = np.where(np.arange(200) % 2, 1.0, 3.0)
    options = {"training": Training(learning_rate=0.01), "normalize": None, "random_state": 0, "l2": 1e-3}
    selection = E2EFSRegressor(12, **options).fit(X * scales, y).selection_
    assert selection.indices.tolist() == list(range(12))
    assert np.corrcoef(selection.contribution[:12], np.linspace(2.0, 0.8, 12))[0, 1] > 0.95
    assert selection.ordered[0] in (0, 1, 2)
    y = np.column_stack([1000.0 * X[:, 0], 0.001 * (X[:, 1] + 0.3 * X[:, 2])])
    several = E2EFSRegressor(3, training=Training(ramp_steps=1000), random_state=0).fit(X, y).selection_.contribution
    assert several[0] == pytest.approx(several[1], rel=0.2)
    assert several[2] < 0.5 * several[1]
