"""Fits on a table that is prepared once are the fits of the estimators themselves."""

import numpy as np
import pytest

from tamiz import E2EFSClassifier, E2EFSRegressor


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = generator.normal(size=(60, 12)).astype(np.float32)
    X[:, 3] += 2 * y
    X[:, 7] -= 2 * y
    return X, y


@pytest.mark.parametrize(
    "parameters", [{}, {"keep": [1]}, {"drop": [3, 4]}, {"groups": [0, 0, 1, *range(2, 11)]}, {"network": "additive"}]
)
def test_one_preparation_serves_several_fits(table, parameters):
    X, y = table
    prepared = E2EFSClassifier(random_state=0).prepare(X, y)
    before = prepared.table.values.copy()
    for m in (2, 5):
        estimator = E2EFSClassifier(m, random_state=0, **parameters)
        ours, direct = estimator.fit_prepared(prepared), E2EFSClassifier(m, random_state=0, **parameters).fit(X, y)
        assert not hasattr(estimator, "selection_")
        assert np.array_equal(ours.ranking_, direct.ranking_)
        assert np.array_equal(ours.decision_function(X), direct.decision_function(X))
    assert np.array_equal(prepared.table.values, before)


def test_the_copy_has_the_parameters_that_repeat_the_fit(table):
    """A regressor of 60 rows would try several weight decays on inner folds; here the rule decides."""
    X, y = table
    estimator = E2EFSRegressor(3, random_state=0)
    target = X[:, 3] + 0.1 * y
    fitted = estimator.fit_prepared(estimator.prepare(X, target))
    again = E2EFSRegressor(**fitted.get_params()).fit(X, target)
    assert estimator.l2 == "auto"
    assert "l2" not in again.selection_.choices
    assert np.array_equal(fitted.predict(X), again.predict(X))


def test_what_progress_raises_ends_the_fit(table):
    X, y = table
    estimator = E2EFSClassifier(3, random_state=0)
    prepared = estimator.prepare(X, y)

    def stop(step, n_alive, refined):
        raise TimeoutError(f"after step {step}")

    with pytest.raises(TimeoutError, match="after step"):
        estimator.fit_prepared(prepared, progress=stop)
    assert estimator.fit_prepared(prepared).get_support().sum() == 3


@pytest.mark.parametrize("parameters", [{"n_features_to_select": "auto"}, {"network": "auto"}])
def test_nothing_is_chosen_from_the_data(table, parameters):
    estimator = E2EFSClassifier(**parameters)
    with pytest.raises(ValueError, match="chooses nothing"):
        estimator.fit_prepared(estimator.prepare(*table))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"variant": "hard"}, {"groups": [0, 0, 1, *range(2, 11)]}, {"network": "additive"}, {"random_state": None}],
)
def test_fitted_copies_are_fits_of_their_own(table, parameters):
    X, y = table
    weights = np.linspace(1, 2, y.size)
    model = E2EFSClassifier(4, **{"random_state": 5, **parameters}).fit(X, y)
    found = list(model.fit_copies([1, 7, 3], X, y, sample_weight=weights))
    assert [m for m, _ in found] == [7, 3, 1]
    for m, ours in found:
        assert ours.n_features_to_select_ == m
        if model.random_state is not None:
            direct = model.copy_for(m).fit(X, y, sample_weight=weights)
            assert np.array_equal(ours.ranking_, direct.ranking_)
            assert np.array_equal(ours.decision_function(X), direct.decision_function(X))
            assert ours.get_params() == direct.get_params()


def test_copies_for_no_size(table):
    X, y = table
    assert list(E2EFSClassifier(4, random_state=5).fit(X, y).fit_copies([], X, y)) == []
