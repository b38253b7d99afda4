from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.feature_selection import RFE
from sklearn.svm import LinearSVC, LinearSVR

from tamiz.baselines import SVMRFE


@pytest.mark.parametrize("step", [1, 4, 0.2])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_selects_what_rfe_selects(step, n_classes):
    X, y = make_classification(70, 20, n_informative=5, n_classes=n_classes, random_state=0)
    machine = LinearSVC(class_weight="balanced", dual="auto", max_iter=10_000, random_state=0)
    rfe = RFE(machine, n_features_to_select=6, step=step).fit(X, y)
    selector = SVMRFE(6, step=step, random_state=0).fit(X, y)
    assert np.array_equal(selector.get_support(), rfe.support_)
    # Rounds stay in order: whatever left later ranks before whatever left earlier.
    order = np.argsort(selector.ranking_)
    assert (np.diff(rfe.ranking_[order]) >= 0).all()
    np.testing.assert_allclose(selector.estimator_.coef_, rfe.estimator_.coef_)


def test_regression_selects_what_rfe_selects():
    X, y = make_regression(60, 15, n_informative=4, noise=1.0, random_state=0)
    machine = LinearSVR(loss="squared_epsilon_insensitive", dual="auto", max_iter=10_000, random_state=0)
    rfe = RFE(machine, n_features_to_select=4, step=1).fit(X, y)
    assert np.array_equal(SVMRFE(4, step=1, random_state=0).fit(X, y).get_support(), rfe.support_)


def test_features_of_one_round_are_ordered_by_their_weight():
    X, y = make_classification(80, 10, n_informative=5, random_state=1)
    selector = SVMRFE(3, step=7, random_state=0).fit(X, y)
    machine = LinearSVC(class_weight="balanced", dual="auto", max_iter=10_000, random_state=0).fit(X, y)
    left = np.flatnonzero(~selector.get_support())
    by_weight = left[np.argsort(-np.abs(machine.coef_[0, left]), kind="stable")]
    assert np.array_equal(np.argsort(selector.ranking_)[3:], by_weight)
    assert selector.n_rounds_ == 1 == selector.selection_.n_steps


def test_class_weights_by_name():
    X, y = make_classification(60, 6, random_state=2)
    names = np.array(["no", "yes"])[y]
    weighted = SVMRFE(2, class_weight={"no": 1.0, "yes": 50.0}, random_state=0).fit(X, names)
    plain = SVMRFE(2, class_weight=None, random_state=0).fit(X, names)
    assert not np.allclose(weighted.estimator_.coef_, plain.estimator_.coef_[:, :2])
