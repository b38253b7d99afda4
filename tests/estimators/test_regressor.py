from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

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


@pytest.mark.parametrize("m", [2, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_a_ridge_with_a_penalty_by_generalised_cross_validation(numbers, weighted, m):
    X, y = numbers
    m = m or X.shape[1]
    y = y + np.random.default_rng(0).normal(size=120)
    weights = np.linspace(0.5, 2, 120) if weighted else np.ones(120)
    reg = regressor(m, normalize="standard").fit(X, y, sample_weight=weights)
    columns = reg.get_support(indices=True)
    Z = X[:, columns] - np.average(X[:, columns], axis=0, weights=weights)
    Z /= np.sqrt(np.average(Z**2, axis=0, weights=weights))
    weights /= weights.mean()
    models = [Ridge(penalty).fit(Z, y, sample_weight=weights) for penalty in PENALTIES]
    hats = [np.trace(Z @ np.linalg.solve(Z.T * weights @ Z + p * np.eye(m), Z.T * weights)) for p in PENALTIES]
    freedom = np.array([1 + (1 + np.log(X.shape[1] / m) / 2) * hat for hat in hats])
    errors = np.array([weights @ (y - model.predict(Z)) ** 2 for model in models])
    best = models[np.argmin(errors / (120 - freedom) ** 2)]
    np.testing.assert_allclose(reg.predict(X), best.predict(Z), rtol=1e-4)
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


@pytest.mark.parametrize(("z", "kept"), [(1.8, [0, 3]), (2.1, [0, 5])])
def test_a_column_comes_in_only_if_it_is_better_than_the_best_of_noise(z, kept):
    """Of 20 columns of noise the largest z is about 1.94; the third column explains nothing."""
    X, _ = np.linalg.qr(np.column_stack([np.ones(200), np.random.default_rng(0).normal(size=(200, 21))]))
    X *= np.sqrt(200)
    share = z**2 / 200
    y = 3 * X[:, 1] + np.sqrt(share) * X[:, 6] + np.sqrt(1 - share) * X[:, 21]
    start = Selection(np.isin(np.arange(20), [0, 3]), np.array([1, 3, 4, 2, *range(5, 21)]))
    found = exchange_columns(Fit(start, None), Problem(X[:, 1:21], y[:, None]), 1e-9)
    assert found.selection.indices.tolist() == kept


def test_columns_are_exchanged_also_beside_dropped_ones():
    """A table without a column and one that drops it give the same columns."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 301))
    X[:, 1:] += 0.7 * X[:, :-1]
    y = X[:, 1:101:10].sum(axis=1) + 2 * rng.normal(size=100)
    dropped = E2EFSRegressor(10, drop=[0], random_state=0).fit(X, y).get_support(indices=True)
    without = E2EFSRegressor(10, random_state=0).fit(X[:, 1:], y).get_support(indices=True)
    np.testing.assert_array_equal(dropped, without + 1)


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
    assert reg.coef_.shape == (3, X.shape[1])
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
