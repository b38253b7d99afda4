"""``evaluate``: what the command does with a file, for tables in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.baselines import FisherScore, Lasso, ReliefF
from tamiz.evaluation import evaluate
from tamiz.evaluation.metrics import R_SQUARED


@pytest.fixture(scope="module")
def signal():
    generator = np.random.default_rng(1)
    y = np.resize(["ill", "well"], 60)
    X = generator.normal(size=(60, 12)).astype(np.float32)
    X[:, [3, 7]] += 2.0 * (y == "ill")[:, None]
    return X, y


def test_any_selector_with_its_verdict(signal):
    X, y = signal
    found = evaluate(FisherScore(2), X, y, n_folds=2, n_permutations=20, n_random=1, sizes=[1, 12])
    assert found.verdict.startswith("2 of 12 columns predict")
    assert [size for size, _ in found.curve()] == [1, 12]
    assert found.test_score is None
    again = evaluate(FisherScore(2), X, y, n_folds=2, n_permutations=20, n_random=1, n_jobs=2)
    assert found.null.scores.tolist() == again.null.scores.tolist()


def test_our_own_estimators_sparse_tables_weights_and_scoring(signal):
    X, y = signal
    more = {"n_folds": 2, "n_permutations": 0, "n_random": 1}
    model = E2EFSClassifier(2, training=Training(ramp_steps=500))
    plain = evaluate(model, X, y, scoring="roc_auc", **more)
    assert plain.metric.name == "AUC"
    assert plain.interval("kept").value > 0.9
    weights = np.where(np.arange(60) < 30, 3.0, 1.0)
    assert evaluate(model, sp.csr_matrix(X), y, sample_weight=weights, **more).interval("kept").value > 0.8
    assert evaluate(Lasso(2), X, y, sample_weight=weights, **more).interval("kept").value > 0.8


def test_data_frames_are_encoded_inside_the_folds(signal):
    pandas = pytest.importorskip("pandas")
    X, y = signal
    frame = pandas.DataFrame(X, columns=[f"gene {i}" for i in range(12)])
    frame.loc[3, "gene 3"] = np.nan
    frame["colour"] = np.resize(["red", "green", "blue"], 60)
    found = evaluate(FisherScore(2), frame, y, n_folds=3, n_permutations=0)
    assert found.n_features == 15
    assert found.fold_share[3] == 1.0
    tested = evaluate(FisherScore(2), frame[:40], y[:40], n_folds=2, n_permutations=0, X_test=frame[40:], y_test=y[40:])
    assert 0.5 < tested.test_score.low <= tested.test_score.value <= tested.test_score.high


def test_several_numeric_targets_at_once():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 10)).astype(np.float32)
    Y = np.column_stack([X[:, 2], 100 * X[:, 5]]) + generator.normal(size=(60, 2)) * [0.3, 30]
    found = evaluate(
        E2EFSRegressor(2, training=Training(ramp_steps=500)), X, Y, n_folds=3, n_permutations=0, n_random=1
    )
    assert found.predicted.shape == (60, 2)
    assert found.fold_share[[2, 5]].tolist() == [1.0, 1.0]
    assert found.interval("kept").value > 0.6


def test_groups_and_time_reach_folds_and_null(signal):
    X, y = signal
    groups = np.arange(60) // 2
    found = evaluate(FisherScore(2), X, y, n_folds=2, groups=groups, n_permutations=3, n_random=1)
    assert found.verdict.startswith("None of 3 shuffled targets does as well, which are too few to tell")
    ordered = evaluate(FisherScore(2), X, y, n_folds=3, time=np.arange(60), n_permutations=2, n_random=1)
    assert not ordered.tested[:15].any()
    assert ordered.tested[15:].all()


def test_flattering_tables_are_warned_of(signal):
    X, y = signal
    with pytest.warns(UserWarning, match="40 of 100 rows are copies"):
        evaluate(FisherScore(2), np.vstack([X, X[:40]]), np.r_[y, y[:40]], n_permutations=0, n_random=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(FisherScore(2), X, y, n_folds=2, n_permutations=0, n_random=1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": np.arange(3)}, "groups must have one value for each of the 60 rows"),
        ({"groups": np.resize([1, 2], 60)}, "2 groups, fewer than the 5 folds"),
        ({"groups": np.resize(["ill", "well"], 60), "n_folds": 2}, "one group only"),
        ({"time": np.r_[np.nan, np.arange(59)]}, "time has no value in 1 row"),
        ({"time": np.repeat([1, 2], 30)}, "Use fewer folds"),
        ({"sample_weight": -np.ones(60)}, "must not be negative"),
        ({"scoring": "r2"}, "is not for classification"),
        ({"X_test": np.ones((2, 12))}, "without y_test"),
        ({"X_test": np.ones((2, 3)), "y_test": ["ill", "well"]}, "features"),
        ({"X_test": np.ones((2, 12)), "y_test": ["ill"]}, "2 rows of X, 1 entries of y"),
        ({"X_test": np.ones((2, 12)), "y_test": ["ill", "odd"]}, "no training rows of: 'odd'"),
        ({"y_test": ["ill", "well"]}, "without X_test"),
        ({"scoring": "acc"}, "Unknown scoring 'acc'"),
        ({"scoring": 3}, "scoring must be one of"),
        ({"n_permutations": -1}, "n_permutations must be at least 0, got -1"),
        ({"n_repeats": 0}, "At least 1 repeat"),
        ({"groups": np.resize(["ill", "well"], 60), "n_repeats": 0}, "At least 1 repeat"),
    ],
)
def test_bad_input(signal, more, message):
    with pytest.raises(ValueError, match=message):
        evaluate(FisherScore(2), *signal, **{"n_permutations": 0, "n_random": 1, **more})


def test_selectors_of_one_target_are_fitted_to_each_of_several():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 8))
    Y = np.column_stack([100 * X[:, 1], X[:, 5]]) + 0.1 * generator.normal(size=(60, 2))
    found = evaluate(ReliefF(n_features_to_select=2), X, Y, n_folds=3, n_permutations=0, n_random=1)
    assert np.flatnonzero(found.fold_share == 1).tolist() == [1, 5]
    assert found.interval("kept").value > 0.95
    with pytest.raises(ValueError, match="Several targets must be numbers"):
        evaluate(FisherScore(2), X, Y > 0)


def test_pooled_r2_is_unbiased_where_the_mean_over_folds_is_not():
    """The true function with R² = 0.5 on 20 rows: the mean of R² per fold is far below, the pooled one is not."""
    pooled, by_fold, covered = [], [], []
    from tamiz.evaluation.folds import make_folds
    from tamiz.evaluation.intervals import corrected_interval

    for seed in range(200):
        generator = np.random.default_rng(seed)
        signal = generator.normal(size=20)
        y = signal + generator.normal(size=20)
        folds = make_folds(y, "regression", 5, seed=seed)
        parts = [R_SQUARED.measure(y[test], signal[test], y[train]) for train, test in folds]
        interval = corrected_interval(R_SQUARED.combine(parts), 0.2)
        pooled.append(interval.value)
        covered.append(interval.low <= 0.5 <= interval.high)
        by_fold.append(np.mean([R_SQUARED(y[test], signal[test]) for _, test in folds]))
    assert np.mean(pooled) == pytest.approx(0.5, abs=0.04)
    assert np.mean(by_fold) < 0.2
    assert 0.9 < np.mean(covered) < 0.995
