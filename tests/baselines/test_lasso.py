from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path
from sklearn.preprocessing import StandardScaler

from tamiz.baselines import Lasso


@pytest.mark.parametrize("wanted", range(1, 10))
def test_regression_keeps_the_first_of_the_lars_path(wanted):
    X, y = load_diabetes(return_X_y=True)
    selector = Lasso(wanted, task="regression").fit(X, y)
    penalties, _, coefficients = lars_path(X, y - y.mean(), method="lasso")
    assert selector.n_alive_ == wanted
    alive = [np.abs(np.array([np.interp(-selector.penalty_, -penalties, path) for path in coefficients])) > 1e-6]
    assert np.array_equal(selector.get_support(), alive[0])


def test_scores_say_where_each_feature_entered():
    X, y = load_diabetes(return_X_y=True)
    selector = Lasso(6, task="regression").fit(X, y)
    penalties, _, coefficients = lars_path(X, y - y.mean(), method="lasso")
    # The path of Efron et al. is exact: a feature enters at the penalty before the first at which it is not zero.
    entered = penalties[np.argmax(coefficients != 0, axis=1) - 1]
    kept = selector.get_support()
    np.testing.assert_allclose(selector.scores_[kept], entered[kept], rtol=0.2)  # ours is read off a grid
    first = np.argsort(-entered)[:4]
    assert np.argsort(selector.ranking_)[:4].tolist() == first.tolist()
    assert selector.scores_[selector.get_support()].min() >= selector.penalty_
    assert selector.scores_[~selector.get_support()].max() < selector.penalty_


@pytest.mark.parametrize("wanted", [1, 3, 8, 15])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_keep_exactly_m_alive(wanted, n_classes):
    X, y = make_classification(90, 30, n_informative=6, n_redundant=2, n_classes=n_classes, random_state=0)
    selector = Lasso(wanted, random_state=0).fit(X, y)
    assert selector.n_alive_ == wanted == selector.get_support().sum()
    assert selector.selection_.converged


def test_screening_leaves_nothing_out():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    from sklearn.linear_model import Lasso as Reference

    selector = Lasso(7, task="regression").fit(X, y)
    reference = Reference(alpha=selector.penalty_).fit(X, y)
    assert np.array_equal(reference.coef_ != 0, selector.get_support())


def test_more_than_the_rows_can_carry_is_said():
    X, y = make_regression(8, 30, n_informative=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="No penalty keeps exactly 20 features alive"):
        selector = Lasso(20).fit(X, y)
    assert selector.get_support().sum() == 20
    assert not selector.selection_.converged


def test_columns_that_only_enter_together_are_completed_by_index():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40))
    X = np.column_stack([a, b, a])
    selector = Lasso(1).fit(X, a + 0.1 * b)
    assert selector.get_support(indices=True).size == 1
    assert not selector.get_support()[1]


def test_constant_columns_never_enter():
    X, y = make_classification(50, 6, random_state=1)
    for constant in (0.0, 1.0, 1e6):
        X[:, 2] = constant
        assert Lasso(3, random_state=0).fit(X, y).scores_[2] == 0.0
        assert Lasso(3, random_state=0).fit(sp.csr_array(X), y).scores_[2] == 0.0


def test_nothing_varies_with_the_target():
    X = np.ones((6, 3))
    for target in ([0, 0, 0, 1, 1, 1], [0.5, 1.0, 2.0, 3.0, 4.0, 5.0]):
        selector = Lasso(2).fit(X, target)
        assert selector.scores_.max() < 1e-12
        assert selector.get_support(indices=True).tolist() == [0, 1]
