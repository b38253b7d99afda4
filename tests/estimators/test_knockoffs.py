"""Knockoffs: their second moments, e-values by hand, the rate of false discoveries, and the interface of scikit-learn."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz import E2EFSRegressor, KnockoffSelection, TableEncoder
from tamiz.estimators.knockoffs import (
    e_bh_q_values,
    knockoff_e_values,
    knockoff_sampler,
    knockoff_variances,
    normal_scores,
)

FEW_ROWS = "the check fits 10 rows, and knockoffs need 20"


@parametrize_with_checks(
    [KnockoffSelection(n_draws=2)],
    expected_failed_checks=lambda estimator: dict.fromkeys(
        ["check_n_features_in_after_fitting", "check_estimators_nan_inf"], FEW_ROWS
    ),
)
@pytest.mark.filterwarnings("ignore:With fdr=", "ignore:The columns are far", "ignore:No features were selected")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def ar_table(n, p, seed=0, rho=0.6):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X, random


@pytest.mark.parametrize("construction", ["mvr", "equicorrelated"])
@pytest.mark.parametrize("grouped", [False, True])
def test_columns_may_change_places_with_their_knockoffs(construction, grouped):
    X, _ = ar_table(20_000, 6)
    groups = np.repeat([0, 1, 2], 2) if grouped else None
    K = knockoff_sampler(X, construction, groups)(np.random.RandomState(0))
    both = np.corrcoef(np.hstack([X, K]).T)
    cross = both[:6, 6:]
    apart = ~np.eye(6, dtype=bool) if groups is None else groups[:, None] != groups
    np.testing.assert_allclose(both[6:, 6:], both[:6, :6], atol=0.04)
    np.testing.assert_allclose(cross[apart], both[:6, :6][apart], atol=0.04)
    assert (np.diag(cross) < 0.9).all()
    np.testing.assert_allclose(normal_scores(np.exp(X[:99])), normal_scores(X[:99]))  # the scale does not matter
    np.testing.assert_array_equal(np.isin(K[:100, 0], X[:, 0]), True)  # knockoffs take values of their column


def test_mvr_is_a_minimum():
    X, _ = ar_table(500, 8, rho=0.8)
    C = np.corrcoef(X.T)

    def loss(s):
        return np.trace(np.linalg.inv(2 * C - np.diag(s))) + (1 / s).sum()

    best = knockoff_variances(C)
    random = np.random.default_rng(0)
    assert all(loss(best) <= loss(best * (1 + 0.02 * random.normal(size=8))) for _ in range(30))
    assert loss(best) < loss(np.full(8, min(0.5, np.linalg.eigvalsh(C)[0])))


def test_one_draw_is_knockoff_plus():
    w = np.array([9.0, 8, 7, 6, 5, 4, -3.5, 3, 2, -1, 0.5, 0])
    for q in (0.17, 0.25, 0.4):
        by_hand = np.inf
        for t in np.sort(np.abs(w[w != 0])):
            if (1 + (w <= -t).sum()) / max(1, (w >= t).sum()) <= q:
                by_hand = t
                break
        q_values = e_bh_q_values(knockoff_e_values(w, q))
        np.testing.assert_array_equal(q_values <= q + 1e-12, w >= by_hand)


def test_the_rate_of_false_discoveries_is_kept():
    """40 tables, the lasso: the mean share of false columns is at most 0.2 plus three standard errors, and power is there."""
    shares, found = [], []
    for seed in range(40):
        X, random = ar_table(200, 40, seed)
        true = random.permutation(40)[:10]
        y = X[:, true] @ np.where(np.arange(10) % 2, -0.4, 0.4) + random.normal(size=200)
        kept = KnockoffSelection(fdr=0.2, n_draws=3).fit(X, y).get_support(indices=True)
        shares.append(len(np.setdiff1d(kept, true)) / max(1, len(kept)))
        found.append(len(np.intersect1d(kept, true)))
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / np.sqrt(40)
    assert np.mean(found) > 5


def test_noise_is_seldom_kept():
    """30 tables without effect: the probability of keeping anything is at most 0.2; 12 and more of 30 would be 1 in 100."""
    hits = 0
    for seed in range(30):
        X, random = ar_table(100, 30, seed)
        hits += KnockoffSelection(fdr=0.2, n_draws=2).fit(X, random.normal(size=100)).get_support().any()
    assert hits <= 11


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (None, "numbers"),
        (None, "text"),
        (None, "three"),
        (E2EFSRegressor(20, random_state=0), "numbers"),
        (RandomForestRegressor(30, random_state=0), "numbers"),
    ],
)
def test_any_model_and_any_target(estimator, target):
    X, random = ar_table(400, 24, seed=1, rho=0.3)
    signal = X[:, :8] @ np.where(np.arange(8) % 2, -1.0, 1.0)
    y = {
        "numbers": signal + 0.3 * random.normal(size=400),
        "text": np.where(signal > 0, "ill", "well"),
        "three": np.digitize(signal, [-1, 1]),
    }[target]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(24)])
    found = KnockoffSelection(estimator, fdr=0.25, n_draws=3).fit(frame, y)
    kept = found.get_support(indices=True)
    assert len(np.intersect1d(kept, np.arange(8))) >= 6
    assert len(np.setdiff1d(kept, np.arange(8))) <= 3
    assert found.selection_.names[0] in frame.columns
    np.testing.assert_array_equal(found.q_values_ <= 0.25, found.get_support())
    again = KnockoffSelection(estimator, fdr=0.25, n_draws=3).fit(frame, y)
    np.testing.assert_array_equal(again.e_values_, found.e_values_)


def test_groups_are_kept_as_a_whole():
    X, random = ar_table(500, 36, rho=0.0)
    groups = np.repeat([f"g{j}" for j in range(12)], 3)
    X[:, 1] = X[:, 0]  # copies within a group are fine
    y = X[:, [2, 5, 8, 11, 14, 17, 20]].sum(axis=1) + random.normal(size=500)
    found = KnockoffSelection(groups=groups, n_draws=3).fit(X, y)
    support = found.get_support().reshape(12, 3)
    assert (support.all(axis=1) == support.any(axis=1)).all()
    assert support[:7].all()
    assert support[7:].sum() <= 3
    assert found.selection_.group_support.sum() == support[:, 0].sum()


@pytest.mark.filterwarnings("ignore:The columns are far")
def test_the_levels_of_an_encoded_column_are_one_group():
    X, random = ar_table(300, 12, rho=0.0)
    frame = pd.DataFrame(X).add_prefix("c").assign(colour=random.choice(["red", "green", "blue"], 300))
    y = X[:, :6].sum(axis=1) + 3 * (frame["colour"] == "red") + random.normal(size=300)
    found = make_pipeline(TableEncoder(), KnockoffSelection(n_draws=2)).fit(frame, y)[-1]
    assert {"colour", "c0"} <= set(found.selection_.names)
    assert len(np.unique(found.q_values_[-3:])) == 1


@pytest.mark.filterwarnings("ignore:There are fewer rows")
def test_wide_tables_are_screened_on_half_of_the_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 1500))
    y = X[:, :10].sum(axis=1) + random.normal(size=200)
    found = KnockoffSelection(n_draws=5, n_screened=100).fit(X, y)
    assert len(found.screened_) == 100
    assert len(np.intersect1d(found.get_support(indices=True), np.arange(10))) >= 7
    assert set(found.get_support(indices=True)) <= set(found.screened_)
    assert (np.delete(found.q_values_, found.screened_) == 1).all()


def heavy_tails():
    X, random = ar_table(300, 20)
    return X / np.sqrt(random.chisquare(2, size=(300, 1)) / 2)


@pytest.mark.parametrize(
    ("X", "fdr", "message"),
    [
        (ar_table(60, 90)[0], 0.2, "fewer rows"),
        (heavy_tails(), 0.2, "far from Gaussian"),
        (ar_table(300, 4)[0], 0.1, "only if at least 10 are: 4 are too few"),
        (np.exp(ar_table(300, 20)[0]), 0.2, None),  # margins of any shape are fine
    ],
)
def test_warnings_where_the_assumption_breaks(X, fdr, message):
    y = np.random.default_rng(3).normal(size=len(X))
    with nullcontext() if message is None else pytest.warns(UserWarning, match=message):
        KnockoffSelection(fdr=fdr, n_draws=1).fit(X, y)


X0, R0 = ar_table(60, 8)
Y0 = R0.normal(size=60)
CONSTANT, COPY = X0.copy(), X0.copy()
CONSTANT[:, 3] = 7.0
COPY[:, 5] = np.exp(X0[:, 2])


@pytest.mark.parametrize(
    ("parameters", "X", "y", "message"),
    [
        ({"fdr": 0}, X0, Y0, "'fdr' parameter of KnockoffSelection must be a float in the range"),
        ({"fdr": 1.0}, X0, Y0, "'fdr' parameter"),
        ({"n_draws": 0}, X0, Y0, "'n_draws' parameter"),
        ({"groups": [1, 2]}, X0, Y0, "groups holds 2 labels for 8 columns"),
        ({}, X0[:19], Y0[:19], "Knockoffs need at least 20 rows, got 19"),
        ({}, CONSTANT, Y0, "Column 'x3' is constant"),
        ({}, COPY, Y0, "Columns 'x2' and 'x5' are perfectly correlated: drop one"),
        ({}, X0, np.zeros(60), "two classes or more, or finite numbers that are not all the same"),
        ({}, X0, None, "requires y"),
        ({}, X0, Y0[:5], "inconsistent|rows"),
        ({"estimator": KNeighborsRegressor()}, X0, Y0, "KNeighborsRegressor tells no importance"),
    ],
)
@pytest.mark.filterwarnings("ignore:With fdr=")
def test_bad_input(parameters, X, y, message):
    with pytest.raises(ValueError, match=message):
        KnockoffSelection(**{"n_draws": 1, **parameters}).fit(X, y)
