"""Each kind of bad input: a clear error or the right answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.errors import TamizError

CLASSIFIER = E2EFSClassifier(2, training=Training(ramp_steps=1000), l2=0.05, random_state=0)
REGRESSOR = E2EFSRegressor(2, training=Training(ramp_steps=1000), random_state=0)


def refused(match, X, y, estimator=CLASSIFIER, error=ValueError, **parameters):
    estimator = clone(estimator).set_params(**parameters)
    with pytest.raises(error, match=match):
        estimator.fit(X, y)
    with pytest.raises(NotFittedError):
        estimator.predict(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_nan_and_infinity_name_the_first_column(table, bad, make):
    X, y = table
    X[5, 17] = X[2, 21] = bad
    refused(f"contains {'NaN' if np.isnan(bad) else 'infinity'} in column 17", make(X), y)


def test_nan_names_the_column_of_a_frame(table):
    X, y = table
    frame = pd.DataFrame(X).add_prefix("g")
    frame.loc[3, "g4"] = np.nan
    refused("contains NaN in column 'g4'", frame, y)
    clf = clone(CLASSIFIER).fit(frame.fillna(0), y)
    with pytest.raises(ValueError, match="contains NaN in column 'g4'"):
        clf.predict(frame)


def test_one_row_and_no_row():
    refused("1 sample", np.ones((1, 5)), [0])
    refused("0 sample", np.ones((0, 5)), [])
    refused("0 feature", np.ones((5, 0)), [0, 1, 0, 1, 0])
    refused("1 sample", np.ones((1, 5)), [0.5], REGRESSOR)


def test_one_class(table):
    refused("only one class", table[0], np.zeros(80))
    with pytest.raises(ValueError, match="only one class"):
        clone(CLASSIFIER).fit(*table, sample_weight=table[1])


def test_a_constant_target(table):
    refused("the same in every row", table[0], np.full(80, 0.5), REGRESSOR)


@pytest.mark.parametrize(
    ("m", "match"),
    [
        (31, "n_features_to_select=31 is more than the 30"),
        (0, "at least 1"),
        (-3, "at least 1"),
        (1.0, "fraction out of range"),
        (0.0, "fraction out of range"),
        (float("nan"), "fraction out of range"),
        ("ten", "must be an integer"),
        (True, "must be an integer"),
    ],
)
def test_numbers_of_features(table, m, match):
    refused(match, *table, n_features_to_select=m)


def test_text_columns_are_named():
    frame = pd.DataFrame({"age": [1.0, 2.0], "sex": ["m", "f"], "town": ["x", "y"]})
    refused(r"column\(s\) 'sex', 'town' hold text", frame, [0, 1])
    refused("X holds text. Encode them first .tamiz.TableEncoder", frame.to_numpy(dtype=str), [0, 1])


def test_columns_of_one_name(table):
    frame = pd.DataFrame(table[0][:, :3], columns=["a", "b", "a"])
    refused("Two columns are called 'a'", frame, table[1])


@pytest.mark.parametrize(
    "y",
    [[0.0, np.nan, 1.0], ["a", None, "b"], ["a", np.nan, "b"], pd.Series([0, pd.NA, 1], dtype="Int64")],
    ids=["nan", "None", "nan among text", "NA"],
)
def test_missing_classes(y):
    values = np.asarray(y, dtype=object) if isinstance(y, list) and isinstance(y[0], str) else y
    refused(r"y contains NaN \(first in row 1\)", np.eye(3), values)


def test_missing_numbers(table):
    refused(r"y contains NaN \(first in row 1\)", np.eye(3), [0.5, np.nan, 1.0], REGRESSOR)
    refused(r"y contains infinity \(first in row 2\)", np.eye(3), [0.5, 1.0, np.inf], REGRESSOR)
    refused(r"y contains NaN \(first in row 1\)", np.eye(3), pd.Series([0.5, pd.NA, 1], dtype="Float64"), REGRESSOR)


def test_targets_of_the_wrong_length_or_kind(table):
    X, y = table
    for estimator in (CLASSIFIER, REGRESSOR):
        refused("80 rows of X, 79 entries of y", X, y[:-1], estimator)
        refused("requires y to be passed", X, None, estimator)
        refused("single value", X, 3, estimator)
    refused("Unknown label type", X, X[:, 0])
    refused("several columns of classes", X, np.column_stack([y, y + 1]))
    refused("could not convert string", X, np.where(y, "a", "b"), REGRESSOR)
    refused("softmax' takes one class per row", X, np.column_stack([y, 1 - y, y]), loss="softmax")
    with pytest.warns(DataConversionWarning):
        clone(CLASSIFIER).fit(X, y[:, None])


def test_sample_weights(table):
    X, y = table
    for weights, match in (
        (np.zeros(80), "0 for every row|at least one non-zero"),
        (np.full(80, -1.0), "Negative values"),
        (np.full(80, np.nan), "NaN"),
        (np.ones(79), "sample_weight.shape"),
    ):
        with pytest.raises(ValueError, match=match):
            clone(CLASSIFIER).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"variant": "sof"}, r"'variant' parameter of E2EFSClassifier must be a str among .*'soft'.*Got 'sof'"),
        ({"loss": "squared_error"}, "'loss' parameter .* must be a str among .*'squared_hinge'"),
        ({"normalize": "minmax"}, "'normalize' parameter .* must be a str among .*or None"),
        ({"network": "cnn"}, "'network' parameter .* must be a str among .*'linear'.* or a callable"),
        ({"network": None}, "'network' parameter .* must be a str among .*'linear'.* or a callable"),
        ({"l2": -1.0}, r"'l2' parameter .* float in the range \[0"),
        ({"l2": np.inf}, r"'l2' parameter .* float in the range \[0"),
        ({"class_weight": "even"}, "'class_weight' parameter .* must be a str among {'balanced'}"),
        ({"class_weight": {0: 1.0, "x": 2.0}}, "class_weight names 'x'"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "class_weight must hold numbers from 0"),
    ],
)
def test_parameters(table, parameters, match):
    refused(match, *table, **parameters)


def test_other_columns_at_predict(table):
    X, y = table
    frame = pd.DataFrame(X).add_prefix("g")
    clf = clone(CLASSIFIER).fit(frame, y)
    with pytest.raises(ValueError, match="same order"):
        clf.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame.rename(columns={"g3": "other"}))
    with pytest.raises(ValueError, match="29 features"):
        clone(CLASSIFIER).fit(X, y).predict(X[:, :29])


def test_an_estimator_that_is_not_fitted(table):
    for method in ("predict", "decision_function", "transform"):
        with pytest.raises(NotFittedError):
            getattr(clone(CLASSIFIER), method)(table[0])


def test_a_failed_fit_leaves_nothing_of_the_one_before(table):
    X, y = table
    clf = clone(CLASSIFIER).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full((4, 3), np.nan), [0, 1, 0, 1])
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert {name for name in vars(clf) if name.endswith("_")} <= {"n_features_in_", "feature_names_in_"}


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_constant_columns_come_after_informative_ones(table, normalize, make):
    X, y = table
    X[:, :3], X[:, 20:] = 7.0, -1.0
    clf = clone(CLASSIFIER).set_params(n_features_to_select=5, normalize=normalize).fit(make(X), y)
    constant = np.ptp(X, axis=0) == 0
    assert clf.ranking_[[3, 7]].max() < clf.ranking_[constant].min()
    assert clf.get_support()[[3, 7]].all()


def test_nothing_but_constant_columns_still_gives_m(table):
    clf = clone(CLASSIFIER).fit(np.ones((80, 30)), table[1])
    assert clf.get_support().sum() == 2


def test_duplicated_columns_give_exactly_m_and_the_same_each_time(table):
    X, y = table
    X = np.column_stack([X[:, 3]] * 10 + [X])
    fits = [clone(CLASSIFIER).set_params(n_features_to_select=4).fit(X, y) for _ in range(2)]
    assert fits[0].get_support().sum() == 4
    np.testing.assert_array_equal(fits[0].ranking_, fits[1].ranking_)


@pytest.mark.parametrize("factor", [1e30, 1e-30])
@pytest.mark.parametrize("normalize", ["erf", "standard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_of_the_features_does_not_matter(table, factor, normalize, dtype):
    X, y = table
    X[:, 3] *= factor
    clf = clone(CLASSIFIER).set_params(normalize=normalize).fit(X.astype(dtype), y)
    assert clf.get_support(indices=True).tolist() == [3, 7]
    assert clf.score(X, y) > 0.9


def test_features_too_large_to_train_on_as_they_are(table):
    refused("Normalise them|diverged", table[0] * 1e30, table[1], error=FloatingPointError, normalize=None)
    refused("beyond the range of float32", table[0] * 1e200, table[1], normalize=None)


@pytest.mark.parametrize("error", [FloatingPointError, ValueError, TamizError])
def test_divergence_is_an_error_of_value_too(table, error):
    refused("lower learning_rate or l2", table[0] * 1e30, table[1], error=error, normalize=None)


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_a_penalty_that_overflows_is_out_of_range(table, network):
    refused("The 'l2' parameter", *table, l2=1e300, network=network)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_predictions_far_outside_of_columns_next_to_zero_are_finite(table, make):
    X, y = table
    clf = clone(CLASSIFIER).set_params(normalize="standard").fit(make(X * 1e-310), y)
    assert np.isfinite(clf.decision_function(make(X))).all()


def test_the_kept_columns_alone_are_enough_to_predict(table):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])])
    clf = clone(CLASSIFIER).fit(frame, y)
    kept = clf.get_feature_names_out()[::-1]
    np.testing.assert_array_equal(clf.predict(frame[kept]), clf.predict(frame))
    np.testing.assert_array_equal(clf.decision_function(frame[kept]), clf.decision_function(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame[kept[:1]])


def test_huge_integers():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**62, size=(80, 6))
    y = X[:, 2] > 2**61
    assert clone(CLASSIFIER).set_params(n_features_to_select=1).fit(X, y).get_support(indices=True).tolist() == [2]
    unsigned = X.astype(np.uint64) * 4
    assert clone(CLASSIFIER).set_params(n_features_to_select=1).fit(unsigned, y).get_support(indices=True).tolist() == [
        2
    ]
    beyond = [[int(value) * 10**30 for value in row] for row in X]  # more than any integer type holds
    assert clone(CLASSIFIER).set_params(n_features_to_select=1).fit(beyond, y).get_support(indices=True).tolist() == [2]


def test_two_rows_are_enough():
    clf = clone(CLASSIFIER).set_params(n_features_to_select=1).fit([[0.0, 1.0], [5.0, 1.0]], ["a", "b"])
    assert clf.get_support(indices=True).tolist() == [0]
    assert clf.predict([[0.0, 1.0], [5.0, 1.0]]).tolist() == ["a", "b"]


def test_a_selection_cut_short_warns(table):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="did not settle within 10 steps"):
        clf = clone(CLASSIFIER).set_params(training__max_steps=10).fit(*table)
    assert clf.get_support().sum() == 2
    assert not clf.selection_.converged
