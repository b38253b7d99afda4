"""Targets and their residuals, exact evidence of columns and pairs, and its null distribution."""

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge

from tamiz.pairs.basis import finer_functions, make_basis
from tamiz.pairs.columns import read_columns
from tamiz.pairs.evidence import Judge, TailFit, fit_tail, log_beta_sf, log_p_values, permutation_variance
from tamiz.pairs.target import _fit_ridge, _monotone, additive_residuals, read_target, residuals_of


def prepare(X, y, weights=None, **kwargs):
    target = read_target(y, weights, len(X))
    return make_basis(read_columns(X), target.weights, **kwargs), target


def test_classes_become_codes_and_weights_shares():
    target = read_target(np.array(["b", "a", "b", "a"]), [1, 1, 2, 0], 4)
    assert target.classes.tolist() == ["a", "b"]
    assert target.values.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert target.weights.tolist() == [0.25, 0.25, 0.5, 0.0]


def test_ridge_and_monotone_fits_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(60, 4)), rng.normal(size=60), rng.random(60)
    ridge = Ridge(alpha=1.0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(_fit_ridge(X, y, weights), ridge.predict(X), atol=1e-12)
    ties = np.round(X[:, 0], 1)
    monotone = IsotonicRegression(out_of_bounds="clip").fit_transform(ties, y + ties, sample_weight=weights)
    np.testing.assert_allclose(_monotone(ties, y + ties, weights), monotone, atol=1e-12)


@pytest.mark.parametrize("y", [np.arange(40) % 2, np.arange(40) % 3, np.random.default_rng(0).normal(size=40) ** 3])
def test_residuals_are_centred_and_whitened(y):
    found = residuals_of(read_target(y, None, 40))
    np.testing.assert_allclose(found.values.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(found.values @ found.values.T / 40, np.eye(len(found.values)), atol=1e-5)


def test_a_column_that_changes_the_spread_only_is_taken_out_of_the_spread():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 10))
    basis, target = prepare(X, random.normal(size=400) * (0.3 + X[:, 4] ** 2))
    tests = Judge(basis, target.weights)
    assert tests.columns(residuals_of(target).sizes()).argmin() == 4
    residuals, _, fitted = additive_residuals(tests, target, tests.columns(residuals_of(target)), 10)
    assert fitted.size == 0
    assert stats.spearmanr(residuals.scale, np.abs(X[:, 4])).statistic < -0.9  # noisy rows count less
    assert tests.columns(residuals.sizes())[4] > 0.2 * tests.columns(residuals_of(target).sizes())[4]


def test_evidence_of_a_pair_is_the_score_test_of_its_products_in_an_additive_logistic_model():
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 2))
    y = (random.random(1000) < 1 / (1 + np.exp(-2 * X.sum(axis=1) - 1.5 * X[:, 0] * X[:, 1]))).astype(int)
    basis, target = prepare(X, y)
    tests = Judge(basis, target.weights)
    residuals, _, fitted = additive_residuals(tests, target, tests.columns(residuals_of(target)), 2)
    assert set(fitted) == {0, 1}
    (log_p,), (strength,), component = tests.pairs(np.array([[0, 1]]), residuals)
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
    assert strength == pytest.approx(np.sqrt(statistic), rel=0.02)
    assert component.tolist() == [[0, 0]]
    # The product alone, with one degree of freedom, is the better of the two tests here.
    alone = stats.chi2.logsf((left[:, 0] @ r) ** 2 / (left[:, 0] @ left[:, 0]) / variance, 1)
    assert log_p == pytest.approx(alone - np.log(0.75), rel=0.1)


def test_own_effects_of_any_shape_are_no_evidence_of_a_pair():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    X[:, 1] = 0.9 * X[:, 0] + 0.4 * X[:, 1]
    basis, target = prepare(X, X[:, 0] ** 2 + np.tanh(2 * X[:, 1]))
    assert Judge(basis, target.weights).pairs(np.array([[0, 1]]), residuals_of(target))[0][0] > np.log(1e-3)


def test_many_pairs_in_parts_and_without_the_store_give_the_same(monkeypatch):
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(200, 12)), random.poisson(0.5, size=(200, 6))])
    basis, target = prepare(X, random.integers(0, 3, 200))
    pairs = np.stack(np.triu_indices(18, 1), axis=1)
    residuals = residuals_of(target)
    whole = Judge(basis, target.weights).pairs(pairs, residuals)[0]
    one_by_one = Judge(basis, target.weights)
    log_p = [one_by_one.pairs(pair[None], residuals)[0][0] for pair in pairs]
    np.testing.assert_allclose(whole, log_p, rtol=1e-3, atol=1e-4)
    monkeypatch.setattr("tamiz.pairs.evidence._CACHE_BYTES", 0)
    np.testing.assert_allclose(Judge(basis, target.weights).pairs(pairs, residuals)[0], whole, rtol=1e-5)


def test_columns_alone_agree_with_the_correlation_of_ranks():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 3))
    y = X[:, 0] + random.normal(size=150)
    basis, target = prepare(X, y, degree=1)
    tests, residuals = Judge(basis, target.weights), residuals_of(target)
    log_p = tests.columns(residuals)
    scores = stats.norm.ppf((stats.rankdata(y) - 0.5) / 150)
    expected = [stats.pearsonr(stats.rankdata(x), scores).pvalue for x in X.T]
    np.testing.assert_allclose(log_p, np.log(expected), rtol=0.1)
    smallest = tests.columns(residuals, np.stack([np.arange(150), random.permutation(150)]))
    assert smallest.shape == (2,)
    assert smallest[0] == pytest.approx(log_p.min())


def projector(features):
    q, _ = np.linalg.qr(features - features.mean(axis=0))
    return q @ q.T


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_p_values_are_uniform_for_rare_classes_and_rare_values(share):
    random = np.random.default_rng(1)
    n = 200
    r = (np.arange(n) < share * n).astype(float)
    r = (r - r.mean()) / r.std()
    H = projector(stats.zscore(random.normal(size=(n, 2)) * (random.random((n, 2)) < 0.3)))
    values = np.array([order @ H @ order for order in (random.permutation(r) for _ in range(20000))]) / n
    variance = permutation_variance(2, (np.diag(H) ** 2).sum(), 1, (r**4).sum() / n**2, n)
    p = np.exp(log_p_values(values, np.full(20000, 2), np.full(20000, variance), 1, n))
    for level in (0.5, 0.1, 0.01):
        assert np.mean(p < level) == pytest.approx(level, rel=0.25)


def test_tails_far_below_the_smallest_number_are_smooth():
    x = np.array([0.8, 0.82, 0.84])
    got = log_beta_sf(np.full(3, 2.0), np.full(3, 400.0), x)
    np.testing.assert_allclose(got, stats.beta.logsf(x, 2.0, 400.0), rtol=1e-3)
    far = log_beta_sf(np.full(50, 2.0), np.full(50, 2000.0), np.linspace(0.25, 0.35, 50))
    assert np.isfinite(far).all()
    assert (np.diff(far) < 0).all()
    assert np.abs(np.diff(far, 2)).max() < 0.1
    assert log_p_values(np.array([0.5]), np.array([0]), np.array([0.0]), 1, 100).tolist() == [0.0]  # no test


@pytest.mark.parametrize("n_permutations", [10, 20, 100])
def test_family_wise_error_is_kept_for_few_permutations(n_permutations):
    random = np.random.default_rng(n_permutations)
    hits = 0
    for _ in range(1500):
        smallest = np.log(random.exponential(size=n_permutations + 1) / 1000)
        hits += fit_tail(smallest[1:], 1000).log_corrected(smallest[0]) < np.log(0.05)
    assert 0.035 < hits / 1500 < 0.07


def test_dependent_tests_count_less_and_without_permutations_all_count():
    smallest = np.log(np.random.default_rng(0).random((50, 100)).min(axis=1))  # 1,000 tests, each ten times
    fit = fit_tail(smallest, 1000)
    assert 60 < fit.n_effective < 160
    assert fit.log_corrected(np.log(1e-4)) < TailFit(1000.0).log_corrected(np.log(1e-4))
    plain = fit_tail(np.empty(0), 500)
    assert np.exp(plain.log_corrected(np.log(1e-5))) == pytest.approx(0.005, rel=0.01)
    assert plain.log_corrected(-1000.0) == pytest.approx(-1000 + np.log(500))
