from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification

from tamiz.baselines import ReliefF
from tamiz.baselines.relieff import scale_to_unit_range


def plain_relieff(X, y, k, difference):
    """The formula in loops. ``difference(f, i, j)`` is d_f."""
    n_rows, n_features = X.shape
    weights = np.zeros(n_features)
    prior = {c: np.mean(y == c) for c in np.unique(y)}
    table = np.array([[[difference(f, i, j) for f in range(n_features)] for j in range(n_rows)] for i in range(n_rows)])
    for i in range(n_rows):
        distances = table[i].sum(axis=1)
        for c, share in prior.items():
            rows = [j for j in np.argsort(distances, kind="stable") if j != i and y[j] == c][:k]
            factor = -1.0 if c == y[i] else share / (1.0 - prior[y[i]])
            weights += factor * table[i][rows].mean(axis=0) / n_rows
    return weights


@pytest.mark.parametrize("k", [1, 3, 10, 100])
def test_formula_in_loops_for_three_classes(k):
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:9, 60:75, 110:121]  # unequal priors
    X, y = X[rows] + 1e-6 * np.random.default_rng(0).normal(size=(rows.size, 4)), y[rows]
    unit = scale_to_unit_range(X)
    expected = plain_relieff(unit, y, k, lambda f, i, j: abs(unit[i, f] - unit[j, f]))
    np.testing.assert_allclose(ReliefF(n_neighbors=k).fit(X, y).scores_, expected, rtol=1e-9, atol=1e-12)


def data_sets():
    for loader in (load_iris, load_wine, load_breast_cancer):
        X, y = loader(return_X_y=True)
        X, y = X[y < 2], y[y < 2]
        keep = np.random.default_rng(0).permutation(y.size)[:120]
        yield loader.__name__, X[keep], y[keep]
    yield "wide", *make_classification(80, 60, n_informative=6, random_state=1)
    yield "four classes", *make_classification(120, 20, n_informative=6, n_classes=4, random_state=2)


@pytest.mark.parametrize(("name", "X", "y"), [pytest.param(*one, id=one[0]) for one in data_sets()])
def test_orders_features_as_skrebate_does(name, X, y):
    skrebate = pytest.importorskip("skrebate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Threshold 1: columns of few different values stay numbers, as they are for us.
        peer = skrebate.ReliefF(n_neighbors=10, categorical_threshold=1, n_jobs=1).fit(X, y)
    assert spearmanr(ReliefF(n_neighbors=10).fit(X, y).scores_, peer.feature_importances_).statistic >= 0.99


def test_missing_values_of_binary_columns_follow_kononenko():
    # 1 - P(value | class of the row with the missing value); both missing: 1 - sum_v P(v | c) P(v | d).
    nan = np.nan
    X = np.array([[0, 1], [1, 0], [nan, 1], [1, 1], [0, nan], [1, 0], [nan, 0], [0, 1.0]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])

    def share(value, c, f):
        known = X[(y == c) & ~np.isnan(X[:, f]), f]
        return np.mean(known == value)

    def difference(f, i, j):
        a, b = X[i, f], X[j, f]
        if np.isnan(a) and np.isnan(b):
            return 1.0 - sum(share(v, y[i], f) * share(v, y[j], f) for v in (0.0, 1.0))
        if np.isnan(a):
            return 1.0 - share(b, y[i], f)
        if np.isnan(b):
            return 1.0 - share(a, y[j], f)
        return float(a != b)

    expected = plain_relieff(X, y, 8, difference)
    np.testing.assert_allclose(ReliefF(n_neighbors=8).fit(X, y).scores_, expected, atol=1e-12)


def test_missing_values_of_numbers_are_expected_differences():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(18, 3)), np.arange(18) % 3
    X[rng.random(X.shape) < 0.25] = np.nan
    unit = scale_to_unit_range(X)

    def values(i, f):
        own = unit[(y == y[i]), f]
        return own[~np.isnan(own)] if np.isnan(unit[i, f]) else unit[i : i + 1, f]

    expected = plain_relieff(unit, y, 4, lambda f, i, j: np.mean(np.abs(values(i, f)[:, None] - values(j, f)[None, :])))
    np.testing.assert_allclose(ReliefF(n_neighbors=4).fit(X, y).scores_, expected, atol=1e-12)


def test_columns_and_classes_without_known_values():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    X[:, 2] += 4 * y
    X[:, 1] = np.nan
    X[y == 1, 3] = np.nan
    selector = ReliefF(n_features_to_select=1, n_neighbors=3).fit(X, y)
    assert selector.scores_[1] == 0.0
    assert selector.ranking_[2] == 1
    assert np.isfinite(ReliefF().fit(X, X[:, 0]).scores_).all()  # regression, too


def test_regression_formula_in_loops():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(25, 3))
    y = 2 * X[:, 0] + 0.1 * rng.normal(size=25)
    unit, target, k = scale_to_unit_range(X), scale_to_unit_range(y[:, None])[:, 0], 4
    differ, joint, changes = np.zeros(3), np.zeros(3), 0.0
    for i in range(25):
        near = [j for j in np.argsort(np.abs(unit - unit[i]).sum(axis=1), kind="stable") if j != i][:k]
        for j in near:
            changes += abs(target[i] - target[j]) / k
            differ += np.abs(unit[i] - unit[j]) / k
            joint += abs(target[i] - target[j]) * np.abs(unit[i] - unit[j]) / k
    expected = joint / changes - (differ - joint) / (25 - changes)
    selector = ReliefF(n_features_to_select=1, n_neighbors=k).fit(X, y)
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-9)
    assert selector.ranking_[0] == 1


def test_blocks_give_the_same(monkeypatch):
    X, y = make_classification(70, 9, random_state=3)
    whole = ReliefF().fit(X, y).scores_
    monkeypatch.setattr("tamiz.baselines.relieff._PAIRS_AT_A_TIME", 70 * 17)
    np.testing.assert_allclose(ReliefF().fit(X, y).scores_, whole, rtol=1e-12)


def test_finds_what_only_works_together():
    rng = np.random.default_rng(8)
    X = rng.integers(0, 2, size=(200, 10)).astype(float)
    y = X[:, 2].astype(int) ^ X[:, 6].astype(int)
    assert set(ReliefF(n_features_to_select=2).fit(X, y).get_support(indices=True)) == {2, 6}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-8, 3.0, 1e8]))
def test_units_do_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 4)), rng.integers(0, 2, size=20)
    y[:2] = 0, 1
    scaled = X * np.array([scale, 1.0, -1.0, 1.0]) + 1.0
    np.testing.assert_allclose(ReliefF().fit(scaled, y).scores_, ReliefF().fit(X, y).scores_, atol=1e-5)


def test_a_row_twice_is_its_own_nearest_hit():
    X, y = np.array([[0.0], [0.4], [1.0], [0.7]]), np.array([0, 0, 1, 1])
    # By hand, k = 1: hits are 0.4, 0.4, 0.3, 0.3 away, misses 0.7, 0.3, 0.6, 0.3: (1.9 - 1.4) / 4 = 0.125.
    np.testing.assert_allclose(ReliefF(n_neighbors=1).fit(X, y).scores_, [0.125])
    # With every row twice the nearest hit is the double, at distance 0: 1.9 / 4.
    twice = ReliefF(n_neighbors=1).fit(np.vstack([X, X]), np.r_[y, y])
    np.testing.assert_allclose(twice.scores_, [0.475])


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_impossible_numbers_of_neighbours(k):
    with pytest.raises(ValueError, match="The 'n_neighbors' parameter of ReliefF must be an int"):
        ReliefF(n_neighbors=k).fit(np.eye(4), [0, 0, 1, 1])
