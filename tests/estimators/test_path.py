from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from tamiz import E2EFSClassifier, E2EFSPath, E2EFSRegressor, TableEncoder, Training

CLASSIFIER = E2EFSClassifier(training=Training(ramp_steps=1000), random_state=0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("normalize", ["erf", None])
def test_each_selection_is_that_of_a_fit_of_its_own(table, make, n_jobs, normalize):
    X, y = make(table[0]), table[1]
    base = clone(CLASSIFIER).set_params(normalize=normalize)
    path = E2EFSPath([2, 5, 10, 30], estimator=base, n_jobs=n_jobs).fit(X, y)
    assert path.n_features_to_select_ == [2, 5, 10, 30]
    for m in path.n_features_to_select_:
        alone = clone(base).set_params(n_features_to_select=m).fit(X, y)
        np.testing.assert_array_equal(path.support_at(m), alone.get_support())
        np.testing.assert_array_equal(path.estimators_[m].coef_, alone.coef_)
        np.testing.assert_array_equal(path.estimators_[m].predict(X), alone.predict(X))


def test_regression_weights_and_names(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(20)])
    path = E2EFSPath([0.1, 2, 4], estimator=E2EFSRegressor(training=Training(ramp_steps=1000), random_state=0))
    path.fit(frame, y, sample_weight=np.ones(120))
    assert path.n_features_to_select_ == [2, 4]  # a tenth of twenty is two: asked for twice, fitted once
    assert path.estimators_[2].get_feature_names_out().tolist() == ["c3", "c7"]
    assert path.feature_names_in_[0] == "c0"


def test_m_counts_columns_of_an_encoded_table():
    """A path counted the levels of a category where the estimators count its column."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 5)), columns=list("abcde"))
    frame["colour"] = rng.choice(["red", "green", "blue", "grey"], 120)
    y = frame["colour"].isin(["red", "green"]) ^ (rng.random(120) < 0.1)
    model = make_pipeline(TableEncoder(), E2EFSPath([1, 3], estimator=CLASSIFIER, cv=2)).fit(frame, y)
    assert model[-1].support_at(1).nonzero()[0].tolist() == [5, 6, 7, 8]
    assert model[-1].estimators_[1].selection_.names == ["colour"]
    assert model[-1].best_ == 1
    chosen = clone(CLASSIFIER).set_params(n_features_to_select="auto", cv=2).choose(model[:-1].transform(frame), y)
    assert chosen.choices["n_features_to_select"].candidates[-1] == 6


def test_the_estimator_handed_in_is_left_alone(table):
    base = clone(CLASSIFIER)
    E2EFSPath([2], estimator=base).fit(*table)
    assert base.n_features_to_select is None
    assert not hasattr(base, "selection_")


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        *(
            ({"n_features_to_select": m}, ValueError, "n_features_to_select")
            for m in ([], 3, "12", [0], [31], [2, 1.5])
        ),
        ({"scoring": "nothing"}, ValueError, "Unknown scoring"),
        ({"rule": -1.0}, ValueError, "'rule' parameter of E2EFSPath"),
        ({"estimator": "svm"}, TypeError, "E2EFSClassifier or E2EFSRegressor"),
        ({"estimator": E2EFSClassifier(costs=np.ones(30), budget=3)}, ValueError, "budget=None"),
    ],
)
def test_bad_parameters(table, parameters, error, message):
    with pytest.raises(error, match=message):
        E2EFSPath(**{"n_features_to_select": [2], "estimator": CLASSIFIER, **parameters}).fit(*table)


def test_other_mistakes(table):
    path = E2EFSPath([2, 3], estimator=CLASSIFIER)
    with pytest.raises(NotFittedError):
        path.support_at(2)
    path.fit(*table)
    with pytest.raises(ValueError, match=r"no selection of 4 features; there are \[2, 3\]"):
        path.support_at(4)
