"""Exact evidence of columns and pairs."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tamiz.pairs.basis import finer_functions, make_basis
from tamiz.pairs.columns import read_columns
from tamiz.pairs.evidence import ColumnTests, PairJudge
from tamiz.pairs.target import additive_residuals, read_target, residuals_of


def prepare(X, y, weights=None):
    table = read_columns(X)
    target = read_target(y, weights, len(X))
    return make_basis(table, target.weights), target


def test_evidence_of_a_pair_is_the_score_test_of_its_products_in_an_additive_logistic_model():
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 2))
    y = (random.random(1000) < 1 / (1 + np.exp(-2 * X.sum(axis=1) - 1.5 * X[:, 0] * X[:, 1]))).astype(int)
    basis, target = prepare(X, y)
    residuals = additive_residuals(basis, target, ColumnTests(basis, target.weights).log_p)
    assert set(residuals.fitted) == {0, 1}
    found = PairJudge(basis, target.weights).judge(np.array([[0, 1]]), residuals)
    main = np.concatenate([finer_functions(basis, j, target.weights) for j in (0, 1)]).T.astype(float)
    p = LogisticRegression(C=1.0, max_iter=1000, tol=1e-8).fit(main, y).predict_proba(main)[:, 1].clip(0.02, 0.98)
    root = np.sqrt(p * (1 - p))
    products = np.stack([a * b for a in basis.of_column(0) for b in basis.of_column(1)], axis=1) * root[:, None]
    design = np.column_stack([np.ones(1000), main]) * root[:, None]
    left = products - design @ np.linalg.lstsq(design, products, rcond=None)[0]
    r = (y - p) / root
    score = left.T @ r
    variance = (r * root) @ (r * root) / (root @ root)  # as it counts in the evidence
    statistic = score @ np.linalg.solve(left.T @ left, score) / (1000 * variance)
    assert found.strength[0] == pytest.approx(np.sqrt(statistic), rel=0.02)
    assert found.component.tolist() == [[0, 0]]


def test_own_effects_of_any_shape_are_no_evidence_of_a_pair():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    X[:, 1] = 0.9 * X[:, 0] + 0.4 * X[:, 1]
    basis, target = prepare(X, X[:, 0] ** 2 + np.tanh(2 * X[:, 1]))
    judge = PairJudge(basis, target.weights)
    assert judge.judge(np.array([[0, 1]]), residuals_of(target)).log_p[0] > np.log(1e-3)


def test_many_pairs_in_parts_and_without_the_store_give_the_same(monkeypatch):
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(200, 12)), random.poisson(0.5, size=(200, 6))])
    basis, target = prepare(X, random.integers(0, 3, 200))
    pairs = np.stack(np.triu_indices(18, 1), axis=1)
    residuals = residuals_of(target)
    whole = PairJudge(basis, target.weights).judge(pairs, residuals)
    one_by_one = PairJudge(basis, target.weights)
    log_p = [one_by_one.judge(pair[None], residuals).log_p[0] for pair in pairs]
    np.testing.assert_allclose(whole.log_p, log_p, rtol=1e-3, atol=1e-4)
    monkeypatch.setattr("tamiz.pairs.evidence._CACHE_BYTES", 0)
    np.testing.assert_allclose(PairJudge(basis, target.weights).judge(pairs, residuals).log_p, whole.log_p, rtol=1e-5)


def test_columns_alone_agree_with_the_correlation_of_ranks():
    from scipy import stats

    random = np.random.default_rng(0)
    X = random.normal(size=(150, 3))
    y = X[:, 0] + random.normal(size=150)
    table, target = read_columns(X), read_target(y, None, 150)
    basis = make_basis(table, target.weights, degree=1)
    log_p = ColumnTests(basis, target.weights).log_p(residuals_of(target))
    scores = stats.norm.ppf((stats.rankdata(y) - 0.5) / 150)
    expected = [stats.pearsonr(stats.rankdata(x), scores).pvalue for x in X.T]
    np.testing.assert_allclose(log_p, np.log(expected), rtol=0.1)


def test_smallest_p_value_of_each_permutation():
    random = np.random.default_rng(0)
    basis, target = prepare(random.normal(size=(60, 5)), random.integers(0, 2, 60))
    tests, residuals = ColumnTests(basis, target.weights), residuals_of(target)
    orders = np.stack([np.arange(60), random.permutation(60)])
    smallest = tests.log_p(residuals, orders)
    assert smallest.shape == (2,)
    assert smallest[0] == pytest.approx(tests.log_p(residuals).min())
