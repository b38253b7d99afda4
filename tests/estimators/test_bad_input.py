"""Each kind of bad input: a clear error or the right answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.errors import TamizError

CLASSIFIER = E2EFSClassifier(2, training=Training(ramp_steps=1000), l2=0.05, random_state=0)
REGRESSOR = E2EFSRegressor(2, training=Training(ramp_steps=1000), random_state=0)
X = np.random.default_rng(0).normal(size=(80, 30))
Y = (X[:, 3] - X[:, 7] > 0).astype(int)
NAN_IN_Y = r"y contains NaN \(first in row 1\)"
FRAME = pd.DataFrame(X).add_prefix("g")
OF_TEXT = pd.DataFrame({"age": [1.0, 2.0], "sex": ["m", "f"], "town": ["x", "y"]})


def with_bad(value, make=np.asarray):
    bad = X.copy()
    bad[5, 17] = bad[2, 21] = value
    return make(bad)


REFUSED = [  # table, target, message
    *(
        (with_bad(bad, make), Y, f"contains {'NaN' if np.isnan(bad) else 'infinity'} in column {column}")
        for bad in (np.nan, np.inf, -np.inf)
        for make, column in (
            (np.asarray, 17),
            (sp.csr_matrix, 17),
            (lambda t: pd.DataFrame(t).add_prefix("g"), "'g17'"),
        )
    ),
    (np.ones((1, 5)), [0], "1 sample"),
    (np.ones((0, 5)), [], "0 sample"),
    (np.ones((5, 0)), [0, 1, 0, 1, 0], "0 feature"),
    (OF_TEXT, [0, 1], r"text, or objects, in 'sex', 'town'\."),
    (OF_TEXT.to_numpy(dtype=str), [0, 1], "X holds text. Encode them first .tamiz.TableEncoder"),
    (pd.DataFrame(X[:, :3], columns=["a", "b", "a"]), Y, "Two columns are called 'a'"),
    (X, np.zeros(80), "only one class"),
    (np.eye(3), [0.0, np.nan, 1.0], NAN_IN_Y),
    (np.eye(3), np.array(["a", None, "b"], dtype=object), NAN_IN_Y),
    (np.eye(3), np.array(["a", np.nan, "b"], dtype=object), NAN_IN_Y),
    (np.eye(3), pd.Series([0, pd.NA, 1], dtype="Int64"), NAN_IN_Y),
    (X, X[:, 0], "Unknown label type"),
    (X, np.column_stack([Y, Y + 1]), "several columns of classes"),
]
REFUSED_NUMBERS = [
    (np.ones((1, 5)), [0.5], "1 sample"),
    (X, np.full(80, 0.5), "the same in every row"),
    (np.eye(3), [0.5, np.nan, 1.0], NAN_IN_Y),
    (np.eye(3), [0.5, 1.0, np.inf], r"y contains infinity \(first in row 2\)"),
    (np.eye(3), pd.Series([0.5, pd.NA, 1], dtype="Float64"), NAN_IN_Y),
    (X, np.where(Y, "a", "b"), "y holds text, but regression needs numbers"),
]
REFUSED_BY_BOTH = [
    (X, Y[:-1], "80 rows of X, 79 entries of y"),
    (X, None, "requires y to be passed"),
    (X, 3, "single value"),
]
CASES = [
    *((CLASSIFIER, *case) for case in REFUSED + REFUSED_BY_BOTH),
    *((REGRESSOR, *case) for case in REFUSED_NUMBERS + REFUSED_BY_BOTH),
]


@pytest.mark.parametrize(("estimator", "table", "y", "message"), CASES)
def test_tables_and_targets(estimator, table, y, message):
    estimator = clone(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.fit(table, y)
    with pytest.raises(NotFittedError):
        estimator.predict(table)


PARAMETERS = [
    ({"n_features_to_select": 31}, "n_features_to_select=31 is more than the 30"),
    ({"n_features_to_select": 0.0}, "fraction out of range"),
    ({"n_features_to_select": "ten"}, "must be an integer"),
    ({"variant": "sof"}, r"'variant' parameter of E2EFSClassifier must be a str among .*'soft'.*Got 'sof'"),
    ({"loss": "squared_error"}, "'loss' parameter .* must be a str among .*'squared_hinge'"),
    ({"normalize": "minmax"}, "'normalize' parameter .* must be a str among .*or None"),
    ({"network": "cnn"}, "'network' parameter .* must be a str among .*'linear'.* or a callable"),
    ({"network": None}, "'network' parameter .* must be a str among .*'linear'.* or a callable"),
    ({"l2": -1.0}, r"'l2' parameter .* float in the range \[0"),
    ({"l2": np.inf}, r"'l2' parameter .* float in the range \[0"),
    ({"l2": 1e300}, "The 'l2' parameter"),  # a penalty that overflows
    ({"l2": 1e300, "network": "mlp"}, "The 'l2' parameter"),
    ({"class_weight": "even"}, "'class_weight' parameter .* must be a str among {'balanced'}"),
    ({"class_weight": {0: 1.0, "x": 2.0}}, "class_weight names 'x'"),
    ({"class_weight": {0: -1.0, 1: 1.0}}, "class_weight must hold numbers from 0"),
]


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS)
def test_parameters(parameters, message):
    estimator = clone(CLASSIFIER).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, Y)
    assert not hasattr(estimator, "selection_")


def test_labels_that_compete_and_a_target_in_a_column():
    with pytest.raises(ValueError, match="softmax' takes one class per row"):
        clone(CLASSIFIER).set_params(loss="softmax").fit(X, np.column_stack([Y, 1 - Y, Y]))
    with pytest.warns(DataConversionWarning):
        clone(CLASSIFIER).fit(X, Y[:, None])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(80), "0 for every row|at least one non-zero"),
        (np.full(80, -1.0), "Negative values"),
        (np.full(80, np.nan), "NaN"),
        (np.ones(79), "sample_weight.shape"),
        (Y, "only one class"),
    ],
)
def test_sample_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        clone(CLASSIFIER).fit(X, Y, sample_weight=weights)


def test_other_tables_at_predict():
    clf = clone(CLASSIFIER)
    for method in ("predict", "decision_function", "transform"):
        with pytest.raises(NotFittedError):
            getattr(clf, method)(X)
    clf.fit(FRAME, Y)
    kept = clf.get_feature_names_out()[::-1]  # these alone are enough
    np.testing.assert_array_equal(clf.predict(FRAME[kept]), clf.predict(FRAME))
    np.testing.assert_array_equal(clf.decision_function(FRAME[kept]), clf.decision_function(FRAME))
    for table, message in (
        (FRAME[FRAME.columns[::-1]], "same order"),
        (FRAME.rename(columns={"g3": "other"}), "feature names should match"),
        (FRAME[kept[:1]], "feature names should match"),
        (FRAME.assign(g4=np.nan), "contains NaN in column 'g4'"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.predict(table)
    with pytest.raises(ValueError, match="29 features"):
        clone(CLASSIFIER).fit(X, Y).predict(X[:, :29])


def test_a_failed_fit_leaves_nothing_of_the_one_before():
    clf = clone(CLASSIFIER).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full((4, 3), np.nan), [0, 1, 0, 1])
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert {name for name in vars(clf) if name.endswith("_")} <= {"n_features_in_", "feature_names_in_"}


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_constant_columns_come_after_informative_ones(normalize, make):
    table = X.copy()
    table[:, :3], table[:, 20:] = 7.0, -1.0
    clf = clone(CLASSIFIER).set_params(n_features_to_select=5, normalize=normalize).fit(make(table), Y)
    constant = np.ptp(table, axis=0) == 0
    assert clf.ranking_[[3, 7]].max() < clf.ranking_[constant].min()
    assert clf.get_support()[[3, 7]].all()


def test_duplicated_columns_give_exactly_m_and_the_same_each_time():
    copies = np.column_stack([X[:, 3]] * 10 + [X])
    fits = [clone(CLASSIFIER).set_params(n_features_to_select=4).fit(copies, Y) for _ in range(2)]
    assert fits[0].get_support().sum() == 4
    np.testing.assert_array_equal(fits[0].ranking_, fits[1].ranking_)


@pytest.mark.parametrize("factor", [1e30, 1e-30])
@pytest.mark.parametrize("normalize", ["erf", "standard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_of_the_features_does_not_matter(factor, normalize, dtype):
    table = X.copy()
    table[:, 3] *= factor
    clf = clone(CLASSIFIER).set_params(normalize=normalize).fit(table.astype(dtype), Y)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert clf.score(table, Y) > 0.9


@pytest.mark.parametrize(
    ("factor", "error", "message"),
    [
        (1e30, FloatingPointError, "Normalise them.*lower learning_rate or l2"),
        (1e30, TamizError, "Normalise them"),
        (1e30, ValueError, "Normalise them"),
        (1e200, ValueError, "beyond the range of float32"),
    ],
)
def test_features_too_large_to_train_on_as_they_are(factor, error, message):
    with pytest.raises(error, match=message):
        clone(CLASSIFIER).set_params(normalize=None).fit(X * factor, Y)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_predictions_far_outside_of_columns_next_to_zero_are_finite(make):
    clf = clone(CLASSIFIER).set_params(normalize="standard").fit(make(X * 1e-310), Y)
    assert np.isfinite(clf.decision_function(make(X))).all()


def test_huge_integers():
    whole = np.random.default_rng(0).integers(0, 2**62, size=(80, 6))
    beyond = [[int(value) * 10**30 for value in row] for row in whole]  # more than any integer type holds
    for table in (whole, whole.astype(np.uint64) * 4, beyond):
        clf = clone(CLASSIFIER).set_params(n_features_to_select=1).fit(table, whole[:, 2] > 2**61)
        assert clf.get_support(indices=True).tolist() == [2]


def test_a_selection_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match="did not settle within 10 steps"):
        clf = clone(CLASSIFIER).set_params(training__max_steps=10).fit(X, Y)
    assert clf.get_support().sum() == 2
    assert not clf.selection_.converged
