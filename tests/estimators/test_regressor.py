from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeCV

from tamiz import E2EFSRegressor, Selection, Training
from tamiz.engines.contract import Fit, Problem
from tamiz.estimators.least_squares import PENALTIES, exchange_columns


def regressor(m=2, **parameters):
    return E2EFSRegressor(m, **{"random_state": 0, **parameters, "training": Training(ramp_steps=1000)})


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("variant", ["soft", "hard", "ranking"])
def test_the_informative_columns_are_found(numbers, loss, variant):
    X, y = numbers
    reg = regressor(loss=loss, variant=variant, normalize="standard").fit(X, y)
    assert reg.get_support(indices=True).tolist() == [3, 7]
    assert reg.predict(X).shape == (120,)
    assert reg.score(X, y) > 0.95
    assert not hasattr(reg, "decision_function")
    assert not hasattr(reg, "classes_")


@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_a_ridge_with_a_penalty_by_generalised_cross_validation(numbers, weighted):
    X, y = numbers
    y = y + np.random.default_rng(0).normal(size=120)
    weights = np.linspace(0.5, 2, 120) if weighted else np.ones(120)
    reg = regressor(normalize="standard").fit(X, y, sample_weight=weights)
    columns = reg.get_support(indices=True)
    Z = X[:, columns] - np.average(X[:, columns], axis=0, weights=weights)
    Z /= np.sqrt(np.average(Z**2, axis=0, weights=weights))
    ridge = RidgeCV(PENALTIES).fit(Z, y, sample_weight=weights / weights.mean())
    if not weighted:  # scikit-learn's criterion is weighted otherwise
        np.testing.assert_allclose(reg.predict(X), ridge.predict(Z), rtol=1e-4)
    np.testing.assert_allclose(reg.predict(X), ridge.predict(Z), atol=0.05)
    given = regressor(normalize="standard", l2=1.0).fit(X, y)  # a number holds for the refinement too
    assert given.coef_[0] @ given.coef_[0] < 0.5 * reg.coef_[0] @ reg.coef_[0]


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_exchanged_while_that_lowers_the_error(sparse):
    """From the first five columns the exchange finds the five true ones, or all but one of them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 60))
    X[:, 1:] += X[:, :-1]  # neighbours correlate
    X[np.abs(X) < 0.5] = 0.0
    y = X[:, [5, 15, 25, 35, 45]] @ [1, -1, 1, -1, 1] + rng.normal(size=80)
    Z, centred = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()

    def error(columns):
        part = Z[:, columns]
        coef = np.linalg.solve(part.T @ part + 100 * np.eye(5), part.T @ centred)
        return ((centred - part @ coef) ** 2).sum() + 100 * coef @ coef

    problem = Problem(sp.csr_matrix(X) if sparse else X, y[:, None], offset=np.ones(60) if sparse else None)
    start = Selection(np.arange(60) < 5, np.arange(1, 61))
    found = exchange_columns(Fit(start, None), problem, 100 / 80).selection
    kept = found.indices
    assert error(kept) < error(np.arange(5))
    assert len(np.intersect1d(kept, [5, 15, 25, 35, 45])) >= 4
    assert sorted(found.ranking[kept]) == [1, 2, 3, 4, 5]
    assert sorted(found.ranking) == list(range(1, 61))


@pytest.mark.parametrize("factor", [1e-200, 1e-6, 1e6, 1e200])
def test_the_scale_of_y_does_not_matter(numbers, factor):
    X, y = numbers
    plain, scaled = regressor().fit(X, y), regressor().fit(X, factor * y)
    np.testing.assert_array_equal(plain.get_support(), scaled.get_support())
    np.testing.assert_allclose(scaled.predict(X) / factor, plain.predict(X), rtol=1e-3)


def test_several_targets_share_a_selection(numbers):
    X, _ = numbers
    Y = np.column_stack([X[:, 3], 100 * X[:, 7], np.full(120, 5.0)])
    reg = regressor(normalize="standard").fit(X, Y)
    assert reg.get_support(indices=True).tolist() == [3, 7]
    assert reg.coef_.shape == (3, 2)
    predicted = reg.predict(X)
    assert predicted.shape == Y.shape
    np.testing.assert_allclose(predicted[:, 2], 5.0, atol=1e-3)
    assert reg.score(X, Y[:, :3]) > 0.6
    assert regressor().fit(X, Y[:, :1]).predict(X).shape == (120, 1)  # a column stays a column
    assert regressor().fit(X, pd.Series(Y[:, 0], dtype="Float64")).predict(X).shape == (120,)


def test_huber_is_safe_from_outliers(numbers):
    X, y = numbers
    bent = y.copy()
    bent[:4] += 500
    assert regressor(loss="huber").fit(X, bent).get_support(indices=True).tolist() == [3, 7]


def test_sparse_is_dense(numbers):
    X = sp.random(120, 40, density=0.3, random_state=0)
    y = np.asarray(3 * X.tocsc()[:, [5]].todense() - X.tocsc()[:, [9]].todense()).ravel()
    dense, sparse = regressor().fit(X.toarray(), y), regressor().fit(X.tocsr(), y)
    np.testing.assert_array_equal(dense.get_support(), sparse.get_support())
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-4)
    np.testing.assert_allclose(dense.predict(X.toarray()), sparse.predict(X.tocsc()), atol=1e-4)


def test_without_intercept(numbers):
    X, y = numbers
    reg = regressor().set_params(training__fit_intercept=False).fit(X, y)
    # The mean of y is taken off before training, so it comes back as the constant term.
    np.testing.assert_allclose(reg.intercept_, y.mean())
