from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score

from tamiz import E2EFSRegressor, Training


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


def test_weights_are_those_of_a_ridge_on_the_selected_columns(numbers):
    X, y = numbers
    reg = regressor(normalize="standard").fit(X, y)
    Z = X[:, [3, 7]]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
    ridge = Ridge(alpha=1.0).fit(Z, y)
    np.testing.assert_allclose(reg.coef_[0], ridge.coef_, rtol=0.02)
    np.testing.assert_allclose(reg.intercept_[0], ridge.intercept_, rtol=0.02)


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


def test_a_column_of_targets_stays_a_column(numbers):
    X, y = numbers
    assert regressor().fit(X, y[:, None]).predict(X).shape == (120, 1)
    assert regressor().fit(X, pd.Series(y, dtype="Float64")).predict(X).shape == (120,)


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


def test_cross_validation(numbers):
    assert cross_val_score(regressor(normalize="standard"), *numbers, cv=3).mean() > 0.9


def test_without_intercept(numbers):
    X, y = numbers
    reg = regressor().set_params(training__fit_intercept=False).fit(X, y)
    # The mean of y is taken off before training, so it comes back as the constant term.
    np.testing.assert_allclose(reg.intercept_, y.mean())
